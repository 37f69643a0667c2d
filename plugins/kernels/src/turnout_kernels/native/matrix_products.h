/* Products of rows with rows: x W^T for row-major x and W, as linear layers have them, and what is added to it. T and V as everywhere.

   Both matrices lie in the order in which elements are multiplied. So nothing is rearranged: a tile of sums takes vectors of
   both, and its lanes are added at the end. Libraries of BLAS first copy W into another order, a quarter of the time if x has
   few rows. */
#define LANES ((int64_t)(VECTOR_BYTES / sizeof(T)))
#define FOLDED ((int64_t)(16 / sizeof(T)))
#define ROWS_OF_TILE 4
#if VECTOR_REGISTERS >= 32
#define COLUMNS_OF_TILE 6
#define EVERY_COLUMN(X, m) X(m, 0) X(m, 1) X(m, 2) X(m, 3) X(m, 4) X(m, 5)
#define COLUMNS(X) X(0) X(1) X(2) X(3) X(4) X(5)
#else
#define COLUMNS_OF_TILE 3
#define EVERY_COLUMN(X, m) X(m, 0) X(m, 1) X(m, 2)
#define COLUMNS(X) X(0) X(1) X(2)
#endif
#define EVERY_SUM(X) EVERY_COLUMN(X, 0) EVERY_COLUMN(X, 1) EVERY_COLUMN(X, 2) EVERY_COLUMN(X, 3)
#define IN_CACHE ((int64_t)(1 << 17)) /* bytes of x that are gone over for each few rows of W */

typedef T V(folded) __attribute__((vector_size(16)));
typedef V(folded) V(folded_anywhere) __attribute__((aligned(sizeof(T)), may_alias));

/* sums[COLUMNS_OF_TILE][ROWS_OF_TILE] of `depth` products: rows of x, `step` elements apart, with rows of W. */
static void V(tile_of_products)(T *sums, const T *const *x, const T *const *w, int64_t depth)
{
    const T *x0 = x[0], *x1 = x[1], *x2 = x[2], *x3 = x[3];
    T rest[(ROWS_OF_TILE + COLUMNS_OF_TILE) * (VECTOR_BYTES / sizeof(T))], found[COLUMNS_OF_TILE][ROWS_OF_TILE][VECTOR_BYTES / sizeof(T)];
    int64_t k = 0;
#define OWN(n) const T *w##n = w[n];
    COLUMNS(OWN)
#undef OWN
#define START(m, n) V(vector) s##m##n = {0};
    EVERY_SUM(START)
#undef START
#define LOAD(n) V(vector) p##n = *(const V(vector_anywhere) *)(w##n + k);
#define ADD(m, n) s##m##n += q * p##n;
#define ADD_ROW(m)                                                                                                                \
    {                                                                                                                             \
        V(vector) q = *(const V(vector_anywhere) *)(x##m + k);                                                                    \
        EVERY_COLUMN(ADD, m)                                                                                                      \
    }
    for (; k + LANES <= depth; k += LANES) {
        COLUMNS(LOAD)
        ADD_ROW(0) ADD_ROW(1) ADD_ROW(2) ADD_ROW(3)
    }
    if (k < depth) { /* what is left of each row, with zeros behind it */
        size_t left = (size_t)(depth - k) * sizeof(T);
        memset(rest, 0, sizeof rest);
        for (int64_t m = 0; m < ROWS_OF_TILE; m++)
            memcpy(rest + m * LANES, x[m] + k, left);
        for (int64_t n = 0; n < COLUMNS_OF_TILE; n++)
            memcpy(rest + (ROWS_OF_TILE + n) * LANES, w[n] + k, left);
        k = 0;
        x0 = rest, x1 = rest + LANES, x2 = rest + 2 * LANES, x3 = rest + 3 * LANES;
#define OWN(n) w##n = rest + (ROWS_OF_TILE + n) * LANES;
        COLUMNS(OWN)
#undef OWN
        COLUMNS(LOAD)
        ADD_ROW(0) ADD_ROW(1) ADD_ROW(2) ADD_ROW(3)
    }
#undef LOAD
#undef ADD
#undef ADD_ROW
#define KEEP(m, n) memcpy(found[n][m], &s##m##n, VECTOR_BYTES);
    EVERY_SUM(KEEP)
#undef KEEP
    for (int64_t n = 0; n < COLUMNS_OF_TILE; n++)
        for (int64_t from = 0; from < ROWS_OF_TILE; from += FOLDED) {
            V(folded) parts[16 / sizeof(T)], turned[16 / sizeof(T)];
            for (int64_t m = 0; m < FOLDED; m++) {
                const T *lanes = found[n][from + m];
                V(folded) whole = *(const V(folded_anywhere) *)lanes;
                for (int64_t at = FOLDED; at < LANES; at += FOLDED)
                    whole += *(const V(folded_anywhere) *)(lanes + at);
                parts[m] = whole;
            }
#if IS_FLOAT
            K(transpose4)((char *)turned, 16, (const char *)parts, 16);
            V(folded) sum = (turned[0] + turned[1]) + (turned[2] + turned[3]);
#else
            K(transpose8)((char *)turned, 16, (const char *)parts, 16);
            V(folded) sum = turned[0] + turned[1];
#endif
            *(V(folded_anywhere) *)(sums + n * ROWS_OF_TILE + from) = sum;
        }
}

/* i: type, whether something is added. a: output [rows, columns], x [rows, depth], W [columns, depth], what is added, which
   broadcasts to the output. Rows of x and W are runs of memory; parts are columns. */
static void V(matrix_products)(const job *j, int64_t part)
{
    const array *x = &j->a[1], *w = &j->a[2], *added = &j->a[3];
    int64_t rows = x->shape[0], columns = w->shape[0], depth = x->shape[1], first, last, down = 0, along = 0;
    int64_t at_once = LEAST(rows, LONGEST(8, IN_CACHE / (int64_t)sizeof(T) / depth / ROWS_OF_TILE * ROWS_OF_TILE));
    if (j->i[1]) {
        along = added->ndim && added->shape[added->ndim - 1] > 1 ? added->stride[added->ndim - 1] : 0;
        down = added->ndim > 1 && added->shape[0] > 1 ? added->stride[0] : 0;
    }
    share(columns, COLUMNS_OF_TILE, j, part, &first, &last);
    for (int64_t from = 0; from < rows; from += at_once)
        for (int64_t n = first; n < last; n += COLUMNS_OF_TILE) {
            const T *of_w[COLUMNS_OF_TILE], *of_x[ROWS_OF_TILE];
            int64_t end = LEAST(from + at_once, rows), wide = LEAST(COLUMNS_OF_TILE, last - n);
            for (int64_t c = 0; c < COLUMNS_OF_TILE; c++) /* the last row again where there are too few */
                of_w[c] = (const T *)(w->p + LEAST(n + c, last - 1) * w->stride[0]);
            for (int64_t m = from; m < end; m += ROWS_OF_TILE) {
                T sums[COLUMNS_OF_TILE * ROWS_OF_TILE];
                for (int64_t r = 0; r < ROWS_OF_TILE; r++)
                    of_x[r] = (const T *)(x->p + LEAST(m + r, end - 1) * x->stride[0]);
                V(tile_of_products)(sums, of_x, of_w, depth);
                for (int64_t r = 0; r < LEAST(ROWS_OF_TILE, end - m); r++) {
                    T *o = (T *)j->a[0].p + (m + r) * columns + n;
                    if (j->i[1])
                        for (int64_t c = 0; c < wide; c++)
                            o[c] = sums[c * ROWS_OF_TILE + r] + *(const T *)(added->p + (m + r) * down + (n + c) * along);
                    else
                        for (int64_t c = 0; c < wide; c++)
                            o[c] = sums[c * ROWS_OF_TILE + r];
                }
            }
        }
}
#undef LANES
#undef FOLDED
#undef ROWS_OF_TILE
#undef COLUMNS_OF_TILE
#undef EVERY_COLUMN
#undef COLUMNS
#undef EVERY_SUM
#undef IN_CACHE
