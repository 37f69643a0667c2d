/* Cumulative sums, products and extremes along a dim. i[0] is the type. */

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
