/* Products of many small matrices. T and V as everywhere.

   Each part multiplies whole matrices, so that no thread waits for another one within a product. Some columns of the second
   matrix are copied into a panel of rows beside each other, which stays in the cache; the first one is read where it lies, in
   any layout. A tile of sums has ROWS_OF_TILE rows and up to VECTORS_OF_TILE registers of columns. */
#define LANES ((int64_t)(VECTOR_BYTES / sizeof(T)))
#define ROWS_OF_TILE 6
#if VECTOR_REGISTERS >= 32
#define VECTORS_OF_TILE 4
#else
#define VECTORS_OF_TILE 2
#endif
#define EVERY_ROW(X, n) X(0, n) X(1, n) X(2, n) X(3, n) X(4, n) X(5, n)
#define ONE(X) X(0)
#define TWO(X) X(0) X(1)
#define FOUR(X) X(0) X(1) X(2) X(3)
#define SUMS_OF_ONE(X) EVERY_ROW(X, 0)
#define SUMS_OF_TWO(X) EVERY_ROW(X, 0) EVERY_ROW(X, 1)
#define SUMS_OF_FOUR(X) EVERY_ROW(X, 0) EVERY_ROW(X, 1) EVERY_ROW(X, 2) EVERY_ROW(X, 3)

#define START(m, n) V(vector) s##m##n = {0};
#define LOAD(n) V(vector) p##n = *(const V(vector_anywhere) *)(panel + n * LANES);
#define ADD(m, n) s##m##n += x##m[at] * p##n;
#define KEEP(m, n) *(V(vector_anywhere) *)(o + m * step + n * LANES) = s##m##n;
/* o [ROWS_OF_TILE, columns], rows `step` apart: products of rows of x, whose elements are `along` apart, with a panel. */
#define TILE_OF(count, columns, sums)                                                                                                \
    static void V(tile_of_##count)(T *o, int64_t step, const T *const *x, int64_t along, const T *panel, int64_t depth)      \
    {                                                                                                                             \
        const T *x0 = x[0], *x1 = x[1], *x2 = x[2], *x3 = x[3], *x4 = x[4], *x5 = x[5];                                          \
        sums(START)                                                                                                               \
        for (int64_t at = 0; at < depth * along; at += along, panel += count * LANES) {                                           \
            columns(LOAD)                                                                                                         \
            sums(ADD)                                                                                                             \
        }                                                                                                                         \
        sums(KEEP)                                                                                                                \
    }
TILE_OF(1, ONE, SUMS_OF_ONE)
TILE_OF(2, TWO, SUMS_OF_TWO)
#if VECTORS_OF_TILE == 4
TILE_OF(4, FOUR, SUMS_OF_FOUR)
#endif
#undef START
#undef LOAD
#undef ADD
#undef KEEP
#undef TILE_OF

/* Columns of a matrix [depth, columns], any strides, as rows of `wide` elements; zeros where there are fewer columns. */
static void V(fill_panel)(T *to, int64_t wide, const T *from, int64_t depth, int64_t columns, int64_t down, int64_t along)
{
    if (columns < wide)
        memset(to, 0, (size_t)(depth * wide) * sizeof(T));
    if (along == 1)
        for (int64_t k = 0; k < depth; k++)
            memcpy(to + k * wide, from + k * down, (size_t)columns * sizeof(T));
    else {
        int64_t n = 0, unit = 16 / (int64_t)sizeof(T), size = (int64_t)sizeof(T);
        for (; down == 1 && n + unit <= columns; n += unit) {
            int64_t k = 0;
            for (; k + unit <= depth; k += unit)
#if IS_FLOAT
                K(transpose4)((char *)(to + k * wide + n), wide * size, (const char *)(from + n * along + k), along * size);
#else
                K(transpose8)((char *)(to + k * wide + n), wide * size, (const char *)(from + n * along + k), along * size);
#endif
            for (; k < depth; k++)
                for (int64_t m = n; m < n + unit; m++)
                    to[k * wide + m] = from[m * along + k];
        }
        for (; n < columns; n++)
            for (int64_t k = 0; k < depth; k++)
                to[k * wide + n] = from[k * down + n * along];
    }
}

/* i: type. a: output [batch, rows, columns], row-major, [parts] of bytes: there was no memory; first [batch, rows, depth] and
   second [batch, depth, columns] matrices, any strides. */
static void V(batches)(const job *j, int64_t part)
{
    const array *x = &j->a[2], *w = &j->a[3];
    int64_t rows = x->shape[1], depth = x->shape[2], columns = w->shape[2], size = (int64_t)sizeof(T), first, last;
    int64_t along = x->stride[2] / size;
    char *room = malloc((size_t)(depth * VECTORS_OF_TILE * VECTOR_BYTES) + 64);
    if (!room) {
        j->a[1].p[part] = 1;
        return;
    }
    T *panel = (T *)(room + (64 - (uintptr_t)room % 64)), found[ROWS_OF_TILE * VECTORS_OF_TILE * VECTOR_BYTES / sizeof(T)];
    share(x->shape[0], 1, j, part, &first, &last);
    for (int64_t batch = first; batch < last; batch++) {
        T *o = (T *)j->a[0].p + batch * rows * columns;
        for (int64_t n = 0, wide; n < columns; n += wide) {
            int64_t left = columns - n, vectors = VECTORS_OF_TILE;
            while (vectors > 1 && (vectors - 1) * LANES >= left)
                vectors /= 2; /* as many columns as there are, but for less than a register */
            wide = vectors * LANES;
            V(fill_panel)(panel, wide, (const T *)(w->p + batch * w->stride[0] + n * w->stride[2]), depth, LEAST(left, wide),
                          w->stride[1] / size, w->stride[2] / size);
            for (int64_t m = 0; m < rows; m += ROWS_OF_TILE) {
                const T *of_x[ROWS_OF_TILE];
                int whole = m + ROWS_OF_TILE <= rows && left >= wide;
                T *to = whole ? o + m * columns + n : found;
                int64_t step = whole ? columns : wide;
                for (int64_t r = 0; r < ROWS_OF_TILE; r++) /* the last row again where there are too few */
                    of_x[r] = (const T *)(x->p + batch * x->stride[0] + LEAST(m + r, rows - 1) * x->stride[1]);
#if VECTORS_OF_TILE == 4
                if (vectors == 4)
                    V(tile_of_4)(to, step, of_x, along, panel, depth);
                else
#endif
                    (vectors == 2 ? V(tile_of_2) : V(tile_of_1))(to, step, of_x, along, panel, depth);
                for (int64_t r = 0; !whole && r < LEAST(ROWS_OF_TILE, rows - m); r++)
                    memcpy(o + (m + r) * columns + n, found + r * wide, (size_t)LEAST(left, wide) * sizeof(T));
            }
        }
    }
    free(room);
}
#undef LANES
#undef ROWS_OF_TILE
#undef VECTORS_OF_TILE
#undef EVERY_ROW
#undef ONE
#undef TWO
#undef FOUR
#undef SUMS_OF_ONE
#undef SUMS_OF_TWO
#undef SUMS_OF_FOUR
