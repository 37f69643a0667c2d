/* Runs of memory, each reduced to one element, and rows of a matrix reduced into one. i[0] is the type. */

#ifndef TURNOUT_REDUCTIONS
#define TURNOUT_REDUCTIONS
/* What a reduction makes of a row. turnout_kernels/reductions.py numbers them alike. */
enum {
    SUM, LARGEST, SMALLEST, SQUARES, NORM, LOG_OF_POWERS, DIFFERENCES, PRODUCT, SIZES, LARGEST_SIZE, SMALLEST_SIZE, VARIANCE,
    DEVIATION, DISTANCES
};
#endif

/* The sum over k of what a loop makes of each element, CHUNK elements at a time */
#define SUM_OF(value)                                                                                                             \
    for (int64_t at = 0; at < m; at += CHUNK) {                                                                                   \
        int64_t here = LEAST(CHUNK, m - at);                                                                                      \
        for (int64_t k = 0; k < here; k++)                                                                                        \
            e[k] = value;                                                                                                         \
        made += V(sum)(e, here);                                                                                                  \
    }

/* i: type, what, length. f: a factor of the result; the middle, for distances. a: results, input; for differences, a second
   input. The last run may be shorter. */
static void V(reduce_runs)(const job *j, int64_t part)
{
    int64_t n = j->i[2], size = j->a[1].size, first, last;
    share((size + n - 1) / n, 1, j, part, &first, &last);
    for (int64_t r = first; r < last; r++) {
        const T *x = (const T *)j->a[1].p + r * n, *y = j->i[1] == DIFFERENCES ? (const T *)j->a[2].p + r * n : x;
        int64_t m = LEAST(n, size - r * n), k = 0;
        double made = 0;
        T e[CHUNK], most;
        switch (j->i[1]) {
        case SUM: made = V(sum)(x, m); break;
        case LARGEST: made = V(outermost)(x, m, 1); break;
        case SMALLEST: made = V(outermost)(x, m, -1); break;
        case SQUARES: made = V(sum_of_products)(x, 0, x, 0, m); break;
        case NORM: made = sqrt(V(sum_of_products)(x, 0, x, 0, m)); break;
        case LOG_OF_POWERS:
            most = V(outermost)(x, m, 1);
            most = most - most == 0 ? most : 0;
            SUM_OF(V(expo)(x[at + k] - most))
            made = log(made) + most;
            break;
        case DIFFERENCES: SUM_OF((x[at + k] - y[at + k]) * (x[at + k] - y[at + k])) break;
        case PRODUCT: {
            double lanes[8] = {1, 1, 1, 1, 1, 1, 1, 1};
            for (; k + 8 <= m; k += 8)
                for (int q = 0; q < 8; q++)
                    lanes[q] *= x[k + q];
            for (; k < m; k++)
                lanes[0] *= x[k];
            made = ((lanes[0] * lanes[1]) * (lanes[2] * lanes[3])) * ((lanes[4] * lanes[5]) * (lanes[6] * lanes[7]));
            break;
        }
        case SIZES: SUM_OF(x[at + k] < 0 ? -x[at + k] : x[at + k]) break;
        case LARGEST_SIZE: made = V(outermost_size)(x, m, 1); break;
        case SMALLEST_SIZE: made = V(outermost_size)(x, m, 0); break;
        case DISTANCES: made = V(sum_of_products)(x, (T)j->f[1], x, (T)j->f[1], m); break;
        default:
            most = (T)(V(sum)(x, m) / (double)m);
            made = V(sum_of_products)(x, most, x, most, m);
        }
        made *= j->f[0];
        ((T *)j->a[0].p)[r] = (T)(j->i[1] == DEVIATION ? sqrt(made) : made);
    }
}
#undef SUM_OF

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
