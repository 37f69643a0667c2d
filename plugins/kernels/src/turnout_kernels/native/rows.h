/* Kernels along a dim. Arrays are row-major, and all of type T unless it says otherwise; i[0] is that type. */

#if IS_FLOAT
#define WORD int32_t
#define BITS as_bits
#define MOST INT32_MAX
#define BITS_OF_NAN 0x7fc00000
#else
#define WORD int64_t
#define BITS as_bits64
#define MOST INT64_MAX
#define BITS_OF_NAN 0x7ff8000000000000
#endif

/* The bits of a number as an integer in the order of the numbers, and back. */
static inline WORD V(in_order)(WORD bits) { return bits ^ (bits >> (8 * sizeof(T) - 1) & MOST); }

/* An integer in the order of the numbers, turned round by `turned` -1: both zeros are one, nan is greater than any number. */
static inline WORD V(rank)(T x, WORD turned)
{
    return V(in_order)(x == x ? (WORD)BITS(x + 0) : BITS_OF_NAN) ^ turned;
}

/* Puts an element among the `k` best, behind those that are not less. */
static inline void V(insert)(WORD *best, int64_t *places, int64_t k, WORD rank, int64_t place)
{
    int64_t at = k - 1;
    for (; at > 0 && best[at - 1] < rank; at--)
        best[at] = best[at - 1], places[at] = places[at - 1];
    best[at] = rank, places[at] = place;
}

/* i: type, length, how many (up to MOST_OF_TOPK, and no more than the length), whether they are the largest. a: values and int64
   indices [rows, how many], input [rows, length]. In order; the first of equal elements comes first. Most elements are no better
   than the last one of the best so far, which is found for 32 at a time. */
#define MOST_OF_TOPK 64
static void V(topk)(const job *j, int64_t part)
{
    int64_t n = j->i[1], k = j->i[2], first, last, places[MOST_OF_TOPK];
    WORD turned = j->i[3] ? 0 : -1, best[MOST_OF_TOPK], ranks[32];
    share(j->a[2].size / n, 1, j, part, &first, &last);
    for (int64_t r = first; r < last; r++) {
        const T *x = (const T *)j->a[2].p + r * n;
        int64_t at = 0;
        for (; at < k; at++)
            V(insert)(best, places, at + 1, V(rank)(x[at], turned), at);
        for (; at + 32 <= n; at += 32) {
            WORD least = best[k - 1];
            int better = 0;
            for (int m = 0; m < 32; m++) {
                ranks[m] = V(rank)(x[at + m], turned);
                better |= ranks[m] > least;
            }
            for (int m = 0; m < 32 && better; m++)
                if (ranks[m] > best[k - 1])
                    V(insert)(best, places, k, ranks[m], at + m);
        }
        for (; at < n; at++)
            if (V(rank)(x[at], turned) > best[k - 1])
                V(insert)(best, places, k, V(rank)(x[at], turned), at);
        for (int64_t m = 0; m < k; m++) {
            ((T *)j->a[0].p)[r * k + m] = x[places[m]];
            ((int64_t *)j->a[1].p)[r * k + m] = places[m];
        }
    }
}
#undef MOST_OF_TOPK
#undef WORD
#undef BITS
#undef MOST
#undef BITS_OF_NAN

/* i: type, length, whether it is the logarithm. a: output, input. The maximum is taken away first, so nothing overflows. */
static void V(softmax)(const job *j, int64_t part)
{
    int64_t n = j->i[1], first, last;
    share(j->a[0].size / n, 1, j, part, &first, &last);
    for (int64_t r = first; r < last; r++) {
        const T *x = (const T *)j->a[1].p + r * n;
        T *o = (T *)j->a[0].p + r * n, most = V(outermost)(x, n, 1);
        if (j->i[2]) {
            double sum = 0;
            T e[CHUNK];
            for (int64_t at = 0; at < n; at += CHUNK) {
                int64_t m = LEAST(CHUNK, n - at);
                for (int64_t k = 0; k < m; k++)
                    e[k] = V(expo)(x[at + k] - most);
                sum += V(sum)(e, m);
            }
            T less = (T)log(sum);
            for (int64_t k = 0; k < n; k++)
                o[k] = x[k] - most - less;
        } else {
            for (int64_t k = 0; k < n; k++)
                o[k] = V(expo)(x[k] - most);
            T factor = (T)(1 / V(sum)(o, n));
            for (int64_t k = 0; k < n; k++)
                o[k] *= factor;
        }
    }
}

/* i: type, length, whether it is the logarithm. a: gradient of the input, gradient of the output, output. */
static void V(softmax_backward)(const job *j, int64_t part)
{
    int64_t n = j->i[1], first, last;
    share(j->a[0].size / n, 1, j, part, &first, &last);
    for (int64_t r = first; r < last; r++) {
        const T *g = (const T *)j->a[1].p + r * n, *y = (const T *)j->a[2].p + r * n;
        T *o = (T *)j->a[0].p + r * n;
        if (j->i[2]) {
            T sum = (T)V(sum)(g, n);
            for (int64_t k = 0; k < n; k++)
                o[k] = g[k] - V(expo)(y[k]) * sum;
        } else {
            T sum = (T)V(sum_of_products)(g, 0, y, 0, n);
            for (int64_t k = 0; k < n; k++)
                o[k] = (g[k] - sum) * y[k];
        }
    }
}

/* i: type, length, has a scale, has a shift, whether it is the root of the mean square. f: eps.
   a: output, means, reciprocal deviations, input, scale, shift. */
static void V(layer_norm)(const job *j, int64_t part)
{
    int64_t n = j->i[1], first, last;
    const T *scale = j->i[2] ? (const T *)j->a[4].p : NULL, *shift = j->i[3] ? (const T *)j->a[5].p : NULL;
    share(j->a[0].size / n, 1, j, part, &first, &last);
    for (int64_t r = first; r < last; r++) {
        const T *x = (const T *)j->a[3].p + r * n;
        T *o = (T *)j->a[0].p + r * n, mean = j->i[4] ? 0 : (T)(V(sum)(x, n) / n);
        T factor = (T)(1 / sqrt(V(sum_of_products)(x, mean, x, mean, n) / n + j->f[0]));
        ((T *)j->a[1].p)[r] = mean, ((T *)j->a[2].p)[r] = factor;
        if (scale && shift)
            for (int64_t k = 0; k < n; k++)
                o[k] = (x[k] - mean) * factor * scale[k] + shift[k];
        else if (scale)
            for (int64_t k = 0; k < n; k++)
                o[k] = (x[k] - mean) * factor * scale[k];
        else
            for (int64_t k = 0; k < n; k++)
                o[k] = (x[k] - mean) * factor + (shift ? shift[k] : 0);
    }
}

/* i: type, length, has a scale, wants the input's gradient, wants those of scale and shift.
   a: gradient of the input, [parts, 2, length] of T for scale and shift, gradient, input, means, reciprocal deviations, scale. */
static void V(layer_norm_backward)(const job *j, int64_t part)
{
    int64_t n = j->i[1], first, last;
    const T *scale = j->i[2] ? (const T *)j->a[6].p : NULL;
    T *sums = (T *)j->a[1].p + part * 2 * n;
    if (j->i[4])
        memset(sums, 0, 2 * n * sizeof(T));
    share(j->a[3].size / n, 1, j, part, &first, &last);
    for (int64_t r = first; r < last; r++) {
        const T *g = (const T *)j->a[2].p + r * n, *x = (const T *)j->a[3].p + r * n;
        T mean = ((const T *)j->a[4].p)[r], factor = ((const T *)j->a[5].p)[r];
        if (j->i[4]) {
            T *of_shift = sums + n;
            for (int64_t k = 0; k < n; k++) {
                sums[k] += g[k] * ((x[k] - mean) * factor);
                of_shift[k] += g[k];
            }
        }
        if (!j->i[3])
            continue;
        T *o = (T *)j->a[0].p + r * n;
        const T *each = g;
        if (scale) {
            for (int64_t k = 0; k < n; k++)
                o[k] = g[k] * scale[k];
            each = o;
        }
        T level = (T)(V(sum)(each, n) / n), slope = (T)(V(sum_of_products)(each, 0, x, mean, n) / n) * factor * factor;
        for (int64_t k = 0; k < n; k++)
            o[k] = (each[k] - level - (x[k] - mean) * slope) * factor;
    }
}

/* i: type, channels of a group, area, groups, has a scale, has a shift. f: eps.
   a: output, means, reciprocal deviations, input [rows, channels of a group, area], scale, shift [channels]. */
static void V(group_norm)(const job *j, int64_t part)
{
    int64_t channels = j->i[1], area = j->i[2], groups = j->i[3], n = channels * area, first, last;
    share(j->a[0].size / n, 1, j, part, &first, &last);
    for (int64_t r = first; r < last; r++) {
        const T *x = (const T *)j->a[3].p + r * n;
        T *o = (T *)j->a[0].p + r * n, mean = (T)(V(sum)(x, n) / n);
        T factor = (T)(1 / sqrt(V(sum_of_products)(x, mean, x, mean, n) / n + j->f[0]));
        ((T *)j->a[1].p)[r] = mean, ((T *)j->a[2].p)[r] = factor;
        for (int64_t c = 0; c < channels; c++) {
            int64_t channel = r % groups * channels + c;
            T scale = j->i[4] ? ((const T *)j->a[4].p)[channel] * factor : factor;
            T shift = j->i[5] ? ((const T *)j->a[5].p)[channel] : 0;
            for (int64_t k = c * area; k < (c + 1) * area; k++)
                o[k] = (x[k] - mean) * scale + shift;
        }
    }
}

/* i: type, channels of a group, area, groups, has a scale, wants the input's gradient. a: gradient of the input, sums for scale and
   shift [rows, channels of a group], gradient, input [rows, channels of a group, area], means, reciprocal deviations, scale. */
static void V(group_norm_backward)(const job *j, int64_t part)
{
    int64_t channels = j->i[1], area = j->i[2], groups = j->i[3], n = channels * area, first, last;
    share(j->a[4].size / n, 1, j, part, &first, &last);
    for (int64_t r = first; r < last; r++) {
        const T *g = (const T *)j->a[3].p + r * n, *x = (const T *)j->a[4].p + r * n;
        T *o = (T *)j->a[0].p + r * n, *along = (T *)j->a[1].p + r * channels, *sums = (T *)j->a[2].p + r * channels;
        T mean = ((const T *)j->a[5].p)[r], factor = ((const T *)j->a[6].p)[r];
        const T *scale = j->i[4] ? (const T *)j->a[7].p + r % groups * channels : NULL;
        double level = 0, slope = 0;
        for (int64_t c = 0; c < channels; c++) {
            double sum = V(sum)(g + c * area, area), more = V(sum_of_products)(g + c * area, 0, x + c * area, mean, area) * factor;
            sums[c] = (T)sum, along[c] = (T)more;
            level += scale ? sum * scale[c] : sum;
            slope += scale ? more * scale[c] : more;
        }
        if (!j->i[5])
            continue;
        T taken = (T)(level / (double)n), tilt = (T)(slope / (double)n * factor);
        for (int64_t c = 0; c < channels; c++) {
            T each = scale ? scale[c] : 1;
            for (int64_t k = c * area; k < (c + 1) * area; k++)
                o[k] = (g[k] * each - taken - (x[k] - mean) * tilt) * factor;
        }
    }
}

/* i: type, length, inner, whether it is the logarithm. a: output, input [outer, length, inner].
   COLUMNS columns at a time: narrower blocks would read little of each page of memory. Twice over memory: the largest element and
   the sum of powers of LINES rows, which stay in the cache, then the results. Sums of floats are added up in double after LINES
   rows; where a larger element comes, what there is of a sum is scaled. */
#define COLUMNS 512
#define LINES 32
static void V(softmax_columns)(const job *j, int64_t part)
{
    int64_t n = j->i[1], inner = j->i[2], blocks = (inner + COLUMNS - 1) / COLUMNS, first, last;
    share(j->a[0].size / (n * inner) * blocks, 1, j, part, &first, &last);
    for (int64_t b = first; b < last; b++) {
        int64_t at = b % blocks * COLUMNS, m = LEAST(COLUMNS, inner - at), base = b / blocks * n * inner + at;
        const T *x = (const T *)j->a[1].p + base;
        T *o = (T *)j->a[0].p + base, most[COLUMNS], e[COLUMNS], less[COLUMNS] = {0};
        double s[COLUMNS] = {0};
        memcpy(most, x, (size_t)m * sizeof(T));
        for (int64_t start = 0; start < n; start += LINES) {
            int64_t end = LEAST(n, start + LINES);
            for (int64_t r = start; r < end; r++)
                for (int64_t k = 0; k < m; k++)
                    most[k] = most[k] >= x[r * inner + k] || most[k] != most[k] ? most[k] : x[r * inner + k];
            for (int64_t k = 0; k < m; k++) {
                T now = most[k] == -(T)INFINITY ? 0 : most[k]; /* nothing but -infinity so far: its powers are 0 */
                e[k] = V(expo)(less[k] - now);
                less[k] = now;
            }
            for (int64_t k = 0; k < m; k++)
                s[k] = s[k] == 0 ? 0 : s[k] * e[k];
            memset(e, 0, sizeof e);
            for (int64_t r = start; r < end; r++)
                for (int64_t k = 0; k < m; k++)
                    e[k] += V(expo)(x[r * inner + k] - less[k]);
            for (int64_t k = 0; k < m; k++)
                s[k] += e[k];
        }
        for (int64_t k = 0; k < m; k++)
            e[k] = (T)(j->i[3] ? log(s[k]) : 1 / s[k]);
        for (int64_t r = 0; r < n; r++)
            if (j->i[3])
                _Pragma("GCC ivdep") for (int64_t k = 0; k < m; k++) o[r * inner + k] = x[r * inner + k] - most[k] - e[k];
            else
                _Pragma("GCC ivdep") for (int64_t k = 0; k < m; k++)
                    o[r * inner + k] = V(expo)(x[r * inner + k] - most[k]) * e[k];
    }
}

/* i: as above. a: gradient of the input, gradient of the output, output. */
static void V(softmax_columns_backward)(const job *j, int64_t part)
{
    int64_t n = j->i[1], inner = j->i[2], blocks = (inner + COLUMNS - 1) / COLUMNS, first, last;
    share(j->a[0].size / (n * inner) * blocks, 1, j, part, &first, &last);
    for (int64_t b = first; b < last; b++) {
        int64_t at = b % blocks * COLUMNS, m = LEAST(COLUMNS, inner - at), base = b / blocks * n * inner + at;
        const T *g = (const T *)j->a[1].p + base, *y = (const T *)j->a[2].p + base;
        T *o = (T *)j->a[0].p + base, e[COLUMNS];
        double s[COLUMNS] = {0};
        for (int64_t start = 0; start < n; start += 32) {
            memset(e, 0, sizeof e);
            for (int64_t r = start; r < LEAST(n, start + 32); r++)
                for (int64_t k = 0; k < m; k++)
                    e[k] += j->i[3] ? g[r * inner + k] : g[r * inner + k] * y[r * inner + k];
            for (int64_t k = 0; k < m; k++)
                s[k] += e[k];
        }
        for (int64_t k = 0; k < m; k++)
            e[k] = (T)s[k];
        for (int64_t r = 0; r < n; r++)
            if (j->i[3])
                _Pragma("GCC ivdep") for (int64_t k = 0; k < m; k++)
                    o[r * inner + k] = g[r * inner + k] - V(expo)(y[r * inner + k]) * e[k];
            else
                _Pragma("GCC ivdep") for (int64_t k = 0; k < m; k++)
                    o[r * inner + k] = (g[r * inner + k] - e[k]) * y[r * inner + k];
    }
}
#undef COLUMNS
#undef LINES

#ifndef TURNOUT_REDUCTIONS
#define TURNOUT_REDUCTIONS
/* What a reduction makes of a row. turnout_kernels/reductions.py numbers them alike. */
enum {
    SUM, LARGEST, SMALLEST, SQUARES, NORM, LOG_OF_POWERS, DIFFERENCES, PRODUCT, SIZES, LARGEST_SIZE, SMALLEST_SIZE, VARIANCE,
    DEVIATION, DISTANCES
};
#endif

/* i: type, what, length, inner. f: a factor of the result. a: results [outer, inner], input [outer, length, inner]. CHUNK columns at a time; sums
   of floats are added up in double after 32 rows. */
static void V(reduce_columns)(const job *j, int64_t part)
{
    int64_t what = j->i[1], n = j->i[2], inner = j->i[3], blocks = (inner + CHUNK - 1) / CHUNK, first, last;
    share(j->a[0].size / inner * blocks, 1, j, part, &first, &last);
    for (int64_t b = first; b < last; b++) {
        int64_t at = b % blocks * CHUNK, m = LEAST(CHUNK, inner - at);
        const T *x = (const T *)j->a[1].p + b / blocks * n * inner + at;
        T *o = (T *)j->a[0].p + b / blocks * inner + at, e[CHUNK];
        double s[CHUNK], middle[CHUNK];
#define ROWS(row, statement)                                                                                                      \
    for (int64_t r = 0; r < n; r++) {                                                                                             \
        const T *row = x + r * inner;                                                                                             \
        for (int64_t k = 0; k < m; k++) {                                                                                         \
            statement;                                                                                                            \
        }                                                                                                                         \
    }
/* The sum of a value of each row, in s */
#define TOTAL(row, value)                                                                                                         \
    memset(s, 0, sizeof s);                                                                                                       \
    for (int64_t start = 0; start < n; start += 32) {                                                                             \
        memset(e, 0, sizeof e);                                                                                                   \
        for (int64_t r = start; r < LEAST(n, start + 32); r++) {                                                                  \
            const T *row = x + r * inner;                                                                                         \
            for (int64_t k = 0; k < m; k++)                                                                                       \
                e[k] += value;                                                                                                    \
        }                                                                                                                         \
        for (int64_t k = 0; k < m; k++)                                                                                           \
            s[k] += e[k];                                                                                                         \
    }
        switch (what) {
        case LARGEST:
        case SMALLEST:
        case LARGEST_SIZE:
        case SMALLEST_SIZE: {
            T sign = what == LARGEST || what == LARGEST_SIZE ? 1 : -1;
            int sizes = what == LARGEST_SIZE || what == SMALLEST_SIZE;
            for (int64_t k = 0; k < m; k++)
                e[k] = sign * (sizes && x[k] < 0 ? -x[k] : x[k]);
            ROWS(row, T v = sign * (sizes && row[k] < 0 ? -row[k] : row[k]); e[k] = e[k] >= v || e[k] != e[k] ? e[k] : v)
            for (int64_t k = 0; k < m; k++)
                s[k] = sign * e[k];
            break;
        }
        case PRODUCT:
            for (int64_t k = 0; k < m; k++)
                s[k] = 1;
            ROWS(row, s[k] *= row[k])
            break;
        case LOG_OF_POWERS: {
            T most[CHUNK];
            memcpy(most, x, (size_t)m * sizeof(T));
            ROWS(row, most[k] = most[k] >= row[k] || most[k] != most[k] ? most[k] : row[k])
            for (int64_t k = 0; k < m; k++)
                most[k] = most[k] - most[k] == 0 ? most[k] : 0;
            TOTAL(row, V(expo)(row[k] - most[k]))
            for (int64_t k = 0; k < m; k++)
                s[k] = log(s[k]) + most[k];
            break;
        }
        case SIZES: TOTAL(row, (row[k] < 0 ? -row[k] : row[k])) break;
        case SQUARES:
        case NORM: TOTAL(row, row[k] * row[k]) break;
        default:
            TOTAL(row, row[k])
            if (what == VARIANCE || what == DEVIATION) {
                T near[CHUNK];
                for (int64_t k = 0; k < m; k++)
                    middle[k] = s[k] / (double)n, near[k] = (T)middle[k];
                TOTAL(row, (row[k] - near[k]) * (row[k] - near[k]))
            }
        }
#undef ROWS
#undef TOTAL
        for (int64_t k = 0; k < m; k++) {
            double made = s[k] * j->f[0];
            o[k] = (T)(what == DEVIATION || what == NORM ? sqrt(made) : made);
        }
    }
}

/* i: type, length, inner, 1 for the largest or -1 for the smallest. a: values [outer, inner], indices, input [outer, length, inner].
   The first of equal elements; nan is both. */
static void V(locate)(const job *j, int64_t part)
{
    int64_t n = j->i[1], inner = j->i[2], first, last;
    T sign = (T)j->i[3];
    if (inner == 1) {
        share(j->a[0].size, 1, j, part, &first, &last);
        for (int64_t r = first; r < last; r++) {
            const T *x = (const T *)j->a[2].p + r * n;
            T found = V(outermost)(x, n, sign);
            int64_t k = 0;
            if (found != found)
                while (x[k] == x[k])
                    k++;
            else
                while (x[k] != found)
                    k++;
            ((T *)j->a[0].p)[r] = x[k];
            ((int64_t *)j->a[1].p)[r] = k;
        }
        return;
    }
    int64_t blocks = (inner + CHUNK - 1) / CHUNK;
    share(j->a[0].size / inner * blocks, 1, j, part, &first, &last);
    for (int64_t b = first; b < last; b++) {
        int64_t at = b % blocks * CHUNK, m = LEAST(CHUNK, inner - at), place = b / blocks * inner + at;
        const T *x = (const T *)j->a[2].p + b / blocks * n * inner + at;
        T best[CHUNK];
        int32_t where[CHUNK] = {0};
        memcpy(best, x, (size_t)m * sizeof(T));
        for (int64_t r = 1; r < n; r++) {
            const T *row = x + r * inner;
            for (int64_t k = 0; k < m; k++) {
                int more = (sign * row[k] > sign * best[k]) | ((row[k] != row[k]) & (best[k] == best[k]));
                best[k] = more ? row[k] : best[k];
                where[k] = more ? (int32_t)r : where[k];
            }
        }
        memcpy((T *)j->a[0].p + place, best, (size_t)m * sizeof(T));
        for (int64_t k = 0; k < m; k++)
            ((int64_t *)j->a[1].p)[place + k] = where[k];
    }
}

/* i: type, length, inner, whether it is the product. a: output, input [outer, length, inner]. Kept in double.
   Without an inner dim, GROUP rows that do not wait for each other are done at once, SPAN columns at a time, in a transposed copy:
   where a row is a multiple of 4 KB, lines of all rows fall into one place of the cache, and each would be fetched again for every
   element (4 million floats: 1.2 ms, and 15 ms where inputs and outputs fall into the same place). */
#if IS_FLOAT
#define TRANSPOSE K(transpose4)
#else
#define TRANSPOSE K(transpose8)
#endif
#define GROUP 8
#define SPAN ((int64_t)(256 / sizeof(T)))
#define STEP ((int64_t)(GROUP * sizeof(T)))

typedef double V(sums_of_rows) __attribute__((vector_size(8 * GROUP)));
typedef T V(of_rows) __attribute__((vector_size(GROUP * sizeof(T)), may_alias));

/* `rows` x `columns` elements, the rows `step` bytes apart, into rows of GROUP elements, or, `back`, from there. */
static inline void V(turn)(T *turned, char *straight, int64_t step, int64_t rows, int64_t columns, int back)
{
    const int64_t by = 16 / sizeof(T);
    if (rows == GROUP && columns == SPAN)
        for (int64_t c = 0; c < GROUP; c += by)
            for (int64_t k = 0; k < SPAN; k += by) {
                char *a = (char *)(turned + k * GROUP + c), *b = straight + c * step + k * (int64_t)sizeof(T);
                if (back)
                    TRANSPOSE(b, step, a, STEP);
                else
                    TRANSPOSE(a, STEP, b, step);
            }
    else
        for (int64_t c = 0; c < rows; c++)
            for (int64_t k = 0; k < columns; k++) {
                T *a = turned + k * GROUP + c, *b = (T *)(straight + c * step) + k;
                if (back)
                    *b = *a;
                else
                    *a = *b;
            }
}

#define CUMULATE(operation, start)                                                                                                \
    {                                                                                                                             \
        if (inner == 1) {                                                                                                         \
            share(outer, GROUP, j, part, &first, &last);                                                                          \
            for (int64_t r = first; r < last; r += GROUP) {                                                                       \
                int64_t rows = LEAST(GROUP, last - r);                                                                            \
                V(sums_of_rows) s = {start, start, start, start, start, start, start, start};                                     \
                for (int64_t at = 0, m; at < n; at += m) {                                                                        \
                    m = LEAST(SPAN, n - at);                                                                                      \
                    V(turn)(turned, (char *)(x + r * n + at), n * (int64_t)sizeof(T), rows, m, 0);                                \
                    for (int64_t k = 0; k < m; k++) {                                                                             \
                        s operation __builtin_convertvector(t[k], V(sums_of_rows));                                               \
                        t[k] = __builtin_convertvector(s, V(of_rows));                                                            \
                    }                                                                                                             \
                    V(turn)(turned, (char *)(o + r * n + at), n * (int64_t)sizeof(T), rows, m, 1);                                \
                }                                                                                                                 \
            }                                                                                                                     \
            return;                                                                                                               \
        }                                                                                                                         \
        double s[CHUNK];                                                                                                          \
        int64_t blocks = (inner + CHUNK - 1) / CHUNK;                                                                             \
        share(outer * blocks, 1, j, part, &first, &last);                                                                         \
        for (int64_t b = first; b < last; b++) {                                                                                  \
            int64_t at = b % blocks * CHUNK, m = LEAST(CHUNK, inner - at);                                                        \
            for (int64_t c = 0; c < m; c++)                                                                                       \
                s[c] = start;                                                                                                     \
            for (int64_t k = 0; k < n; k++) {                                                                                     \
                int64_t place = (b / blocks * n + k) * inner + at;                                                                \
                for (int64_t c = 0; c < m; c++)                                                                                   \
                    o[place + c] = (T)(s[c] operation x[place + c]);                                                              \
            }                                                                                                                     \
        }                                                                                                                         \
    }
static void V(cumulate)(const job *j, int64_t part)
{
    int64_t n = j->i[1], inner = j->i[2], outer = n * inner > 0 ? j->a[0].size / (n * inner) : 0, first, last;
    const T *x = (const T *)j->a[1].p;
    T *o = (T *)j->a[0].p;
    _Alignas(64) T turned[256 / sizeof(T) * GROUP] = {0};
    V(of_rows) *t = (V(of_rows) *)turned;
    if (j->i[3])
        CUMULATE(*=, 1)
    else
        CUMULATE(+=, 0)
}
#undef CUMULATE
#undef TRANSPOSE
#undef GROUP
#undef SPAN
#undef STEP

/* i: type, length, inner, 1 for the largest or -1 for the smallest. a: values, indices, input [outer, length, inner]. The last of
   equal elements; nan is both, and the first one stays. */
static void V(cumulative_extreme)(const job *j, int64_t part)
{
    int64_t n = j->i[1], inner = j->i[2], blocks = (inner + CHUNK - 1) / CHUNK, first, last;
    T sign = (T)j->i[3];
    share(j->a[0].size / (n * inner) * blocks, 1, j, part, &first, &last);
    for (int64_t b = first; b < last; b++) {
        int64_t at = b % blocks * CHUNK, m = LEAST(CHUNK, inner - at);
        T best[CHUNK];
        int64_t where[CHUNK] = {0};
        for (int64_t k = 0; k < n; k++) {
            int64_t place = (b / blocks * n + k) * inner + at;
            const T *row = (const T *)j->a[2].p + place;
            T *o = (T *)j->a[0].p + place;
            int64_t *w = (int64_t *)j->a[1].p + place;
            for (int64_t c = 0; c < m; c++) {
                int more = !k | (sign * row[c] >= sign * best[c]) | (row[c] != row[c]);
                best[c] = more ? row[c] : best[c];
                where[c] = more ? k : where[c];
                o[c] = best[c], w[c] = where[c];
            }
        }
    }
}
