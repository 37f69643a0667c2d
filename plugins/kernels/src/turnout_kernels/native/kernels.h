/* All kernels for one instruction set: included once for each, with ISA set. No include guard. */
#define K(name) JOIN(name, ISA)
#define LONGEST(a, b) ((a) > (b) ? (a) : (b))
#define LEAST(a, b) ((a) < (b) ? (a) : (b))
#include "halves.h"
#include "transposes.h"

#define T float
#define V(name) JOIN(JOIN(name, f), ISA)
#define IS_FLOAT 1
#include "of_floats.h"
#undef T
#undef V
#undef IS_FLOAT
#define T double
#define V(name) JOIN(JOIN(name, d), ISA)
#define IS_FLOAT 0
#include "of_floats.h"
#undef T
#undef V
#undef IS_FLOAT

/* By dtype: i[0] is that of the computation. */
#define BY_TYPE(name)                                                                                                            \
    static void K(name)(const job *j, int64_t part)                                                                              \
    {                                                                                                                            \
        if (j->i[0] == F64)                                                                                                      \
            JOIN(JOIN(name, d), ISA)(j, part);                                                                                   \
        else                                                                                                                     \
            JOIN(JOIN(name, f), ISA)(j, part);                                                                                   \
    }
EVERY_KERNEL_OF_FLOATS(BY_TYPE)
#undef BY_TYPE
#include "indexing.h"
#include "random.h"
#undef K
#undef LONGEST
#undef LEAST
