/* Softmax along a dim, and its logarithm. Arrays are row-major, of type T; i[0] is that type. */

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
