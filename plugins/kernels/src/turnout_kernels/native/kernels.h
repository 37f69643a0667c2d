/* All kernels for one instruction set: included once for each, with ISA set. No include guard. */
#define K(name) JOIN(name, ISA)
#define LONGEST(a, b) ((a) > (b) ? (a) : (b))
#define LEAST(a, b) ((a) < (b) ? (a) : (b))
#include "halves.h"
#include "transposes.h"

#define T float
#define V(name) JOIN(JOIN(name, f), ISA)
#define IS_FLOAT 1
#include "functions.h"
#include "sums.h"
#include "pointwise.h"
#include "rows.h"
#include "reductions.h"
#include "scattering.h"
#include "images.h"
#include "convolutions.h"
#include "recurrent.h"
#include "matrix_products.h"
#include "batches.h"
#undef T
#undef V
#undef IS_FLOAT
#define T double
#define V(name) JOIN(JOIN(name, d), ISA)
#define IS_FLOAT 0
#include "functions.h"
#include "sums.h"
#include "pointwise.h"
#include "rows.h"
#include "reductions.h"
#include "scattering.h"
#include "images.h"
#include "convolutions.h"
#include "recurrent.h"
#include "matrix_products.h"
#include "batches.h"
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
BY_TYPE(map)
BY_TYPE(softmax)
BY_TYPE(softmax_backward)
BY_TYPE(layer_norm)
BY_TYPE(layer_norm_backward)
BY_TYPE(group_norm)
BY_TYPE(group_norm_backward)
BY_TYPE(softmax_columns)
BY_TYPE(softmax_columns_backward)
BY_TYPE(reduce_runs)
BY_TYPE(reduce_columns)
BY_TYPE(locate)
BY_TYPE(cumulate)
BY_TYPE(cumulative_extreme)
BY_TYPE(add_at)
BY_TYPE(add_rows_at)
BY_TYPE(depthwise)
BY_TYPE(depthwise_backward)
BY_TYPE(bilinear)
BY_TYPE(max_pool)
BY_TYPE(mean_pool)
BY_TYPE(mean_windows)
BY_TYPE(batch_norm)
BY_TYPE(batch_norm_backward)
BY_TYPE(convolve)
BY_TYPE(convolve_weights)
BY_TYPE(topk)
BY_TYPE(recurrent)
BY_TYPE(matrix_products)
BY_TYPE(batches)
#undef BY_TYPE
#include "indexing.h"
#include "random.h"
#undef K
#undef LONGEST
#undef LEAST
