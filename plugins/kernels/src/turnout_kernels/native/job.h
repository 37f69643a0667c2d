/* What every kernel gets: the arrays of one call, its numbers, and which part of the work to do. */
#ifndef TURNOUT_JOB_H
#define TURNOUT_JOB_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ARRAYS 10
#define MAX_DIMS 64 /* as many as a buffer has */
#define MAX_NUMBERS 24

/* Strides are in bytes. */
typedef struct {
    char *p;
    int64_t ndim, size, shape[MAX_DIMS], stride[MAX_DIMS];
} array;

/* `f` and `i` are the numbers of the call; their meaning is at the head of each kernel. `parts` is how many parts there are: it
   depends on the size alone, never on the number of threads, so that a result does not depend on it either. */
typedef struct {
    array a[MAX_ARRAYS];
    double f[MAX_NUMBERS];
    int64_t i[MAX_NUMBERS], parts;
    int count;
} job;

typedef void kernel(const job *, int64_t part);

/* dtypes, as turnout_kernels/native.py numbers them */
enum { F32, F64, F16, BF16, BYTE, I64, DTYPES };

/* The first and the last-but-one of `n` things that a part does; pieces are multiples of `unit`. */
static inline void share(int64_t n, int64_t unit, const job *j, int64_t part, int64_t *first, int64_t *last)
{
    int64_t units = (n + unit - 1) / unit, each = (units + j->parts - 1) / j->parts * unit;
    *first = part * each < n ? part * each : n;
    *last = *first + each < n ? *first + each : n;
}

/* Elements at any address */
typedef float any_float __attribute__((aligned(1), may_alias));
typedef double any_double __attribute__((aligned(1), may_alias));
typedef uint16_t any_half __attribute__((aligned(1), may_alias));
typedef uint32_t any_word32 __attribute__((aligned(1), may_alias));
typedef int64_t any_word __attribute__((aligned(1), may_alias));

static inline float as_float(uint32_t bits) { float f; memcpy(&f, &bits, 4); return f; }
static inline uint32_t as_bits(float f) { uint32_t bits; memcpy(&bits, &f, 4); return bits; }
static inline double as_double(uint64_t bits) { double f; memcpy(&f, &bits, 8); return f; }
static inline uint64_t as_bits64(double f) { uint64_t bits; memcpy(&bits, &f, 8); return bits; }

#endif
