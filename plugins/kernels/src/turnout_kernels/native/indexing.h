/* Kernels that move elements and do not look at them: i[0] is the size of one. Arrays are row-major. */

/* i: size, length of the source, inner, length of the index. a: output, [parts] of bytes: an index was out of range; index,
   source. */
static void K(gather)(const job *j, int64_t part)
{
    int64_t n = j->i[1], inner = j->i[2], count = j->i[3], first, last;
    const int64_t *index = (const int64_t *)j->a[2].p;
    char wrong = 0;
    share(j->a[0].size, 64, j, part, &first, &last);
#define GATHER(type)                                                                                                              \
    {                                                                                                                             \
        const type *x = (const type *)j->a[3].p;                                                                                  \
        type *o = (type *)j->a[0].p;                                                                                              \
        if (inner == 1)                                                                                                           \
            for (int64_t at = first; at < last;) {                                                                                \
                int64_t r = at / count, stop = LEAST(last, (r + 1) * count);                                                      \
                const type *row = x + r * n;                                                                                      \
                for (; at < stop; at++) {                                                                                         \
                    uint64_t k = (uint64_t)index[at], good = k < (uint64_t)n;                                                     \
                    wrong |= (char)!good;                                                                                         \
                    o[at] = row[good ? k : 0];                                                                                    \
                }                                                                                                                 \
            }                                                                                                                     \
        else                                                                                                                      \
            for (int64_t at = first; at < last; at++) {                                                                           \
                uint64_t k = (uint64_t)index[at], good = k < (uint64_t)n;                                                         \
                wrong |= (char)!good;                                                                                             \
                o[at] = x[(at / (count * inner) * n + (int64_t)(good ? k : 0)) * inner + at % inner];                             \
            }                                                                                                                     \
    }
    switch (j->i[0]) {
    case 1: GATHER(uint8_t) break;
    case 2: GATHER(uint16_t) break;
    case 4: GATHER(uint32_t) break;
    default: GATHER(uint64_t) break;
    }
#undef GATHER
    j->a[1].p[part] = wrong;
}

/* i: size of a row in bytes, rows of the source. a: output, [parts] of bytes: an index was out of range; index, source. */
static void K(select_rows)(const job *j, int64_t part)
{
    int64_t size = j->i[0], first, last;
    share(j->a[2].size, 1, j, part, &first, &last);
    for (int64_t k = first; k < last; k++) {
        int64_t at = ((const int64_t *)j->a[2].p)[k];
        if ((uint64_t)at >= (uint64_t)j->i[1])
            j->a[1].p[part] = 1;
        else
            memcpy(j->a[0].p + k * size, j->a[3].p + at * size, (size_t)size);
    }
}

/* `n` bytes, in vectors whose stores do not cross lines of the cache. Short rows one after the other take the library's function,
   which looks at its arguments anew for each, up to twice as long. */
typedef uint8_t K(bytes) __attribute__((vector_size(VECTOR_BYTES)));
typedef uint8_t K(bytes_anywhere) __attribute__((vector_size(VECTOR_BYTES), aligned(1), may_alias));

static inline void K(copy_bytes)(char *to, const char *from, int64_t n)
{
    if (n < 2 * VECTOR_BYTES) {
        memcpy(to, from, (size_t)n);
        return;
    }
    K(bytes_anywhere) last = *(const K(bytes_anywhere) *)(from + n - VECTOR_BYTES);
    *(K(bytes_anywhere) *)to = *(const K(bytes_anywhere) *)from;
    int64_t k = VECTOR_BYTES - (int64_t)((uintptr_t)to % VECTOR_BYTES);
    for (; k + 4 * VECTOR_BYTES <= n; k += 4 * VECTOR_BYTES) {
        const K(bytes_anywhere) *x = (const K(bytes_anywhere) *)(from + k);
        K(bytes) a = x[0], b = x[1], c = x[2], d = x[3], *o = (K(bytes) *)(to + k);
        o[0] = a, o[1] = b, o[2] = c, o[3] = d;
    }
    for (; k + VECTOR_BYTES <= n; k += VECTOR_BYTES)
        *(K(bytes_anywhere) *)(to + k) = *(const K(bytes_anywhere) *)(from + k);
    *(K(bytes_anywhere) *)(to + n - VECTOR_BYTES) = last;
}

/* ---- copies of any layout */

/* A block of a transposition: four lines of the cache, which lie beside each other, of each of BLOCK_COLUMNS rows of the input */
#define BLOCK_BYTES 256
#define BLOCK_COLUMNS 64
/* By the size of an element */
#define BY_SIZE(size, X)                                                                                                          \
    switch (size) {                                                                                                               \
    case 1: X(uint8_t) break;                                                                                                     \
    case 2: X(any_half) break;                                                                                                    \
    case 4: X(any_word32) break;                                                                                              \
    default: X(any_word) break;                                                                                                   \
    }

/* A block of `rows` x `columns` elements, whose rows lie `step` bytes apart in the output, and whose columns `across` bytes apart in
   the input; the elements of a column are `along` bytes apart. It goes through memory of its own: where strides are powers of two,
   the lines of many rows fall into one place of the cache. */
static void K(transpose_block)(
    char *to, int64_t step, const char *from, int64_t across, int64_t along, int64_t rows, int64_t columns, int64_t size)
{
    _Alignas(64) char block[BLOCK_BYTES * BLOCK_COLUMNS];
    int64_t by = 16 / size, high = along == size && size >= 4 ? rows / by * by : 0, wide = columns / by * by;
    for (int64_t c = 0; c < wide; c += by)
        for (int64_t r = 0; r < high; r += by) {
            if (size == 4)
                K(transpose4)(block + (r * BLOCK_COLUMNS + c) * 4, 4 * BLOCK_COLUMNS, from + c * across + r * 4, across);
            else
                K(transpose8)(block + (r * BLOCK_COLUMNS + c) * 8, 8 * BLOCK_COLUMNS, from + c * across + r * 8, across);
        }
#define SCATTER(type)                                                                                                             \
    for (int64_t c = 0; c < columns; c++)                                                                                         \
        for (int64_t r = c < wide ? high : 0; r < rows; r++)                                                                      \
            ((type *)block)[r * BLOCK_COLUMNS + c] = *(const type *)(from + c * across + r * along);
    BY_SIZE(size, SCATTER)
#undef SCATTER
    for (int64_t r = 0; r < rows; r++)
        K(copy_bytes)(to + r * step, block + r * BLOCK_COLUMNS * size, columns * size);
}

/* `n` elements with strides in bytes */
static void K(copy_run)(char *to, int64_t step, const char *from, int64_t along, int64_t n, int64_t size)
{
    if (step == size && along == size) {
        /* The C library's function writes large pieces without reading what was there. */
        if (n * size >= 4096)
            memcpy(to, from, (size_t)(n * size));
        else
            K(copy_bytes)(to, from, n * size);
        return;
    }
#define EACH(type)                                                                                                                \
    if (step == (int64_t)sizeof(type))                                                                                            \
        for (int64_t k = 0; k < n; k++)                                                                                           \
            ((type *)to)[k] = *(const type *)(from + k * along);                                                                  \
    else                                                                                                                          \
        for (int64_t k = 0; k < n; k++)                                                                                           \
            *(type *)(to + k * step) = *(const type *)(from + k * along);
    BY_SIZE(size, EACH)
#undef EACH
}

/* i: size of an element. a: output, input of its shape; both of any layout, in memory that they do not share. Where the input lies
   across the output, a part is some blocks, else some elements in the order of the output. */
static void K(copy)(const job *j, int64_t part)
{
    int64_t size = j->i[0], shape[MAX_DIMS], stride[4][MAX_DIMS], first, last;
    int nd = JOIN(JOIN(ordered, f), ISA)(j, 2, shape, stride);
    if (!nd)
        shape[nd++] = 1, stride[0][0] = stride[1][0] = size;
    int across = stride[0][nd - 1] == size && JOIN(JOIN(crossed, f), ISA)(2, nd, shape, stride), left = nd - 1 - across;
    int64_t n = shape[nd - 1], rows = across ? shape[nd - 2] : 1, high = BLOCK_BYTES / size;
    int64_t beside = (n + BLOCK_COLUMNS - 1) / BLOCK_COLUMNS, blocks = (rows + high - 1) / high * beside, plane = across ? blocks : n;
    share(j->a[0].size / (n * rows) * plane, across ? 1 : 64, j, part, &first, &last);
    for (int64_t at = first; at < last;) {
        int64_t place = at % plane, rest = at / plane;
        char *to = j->a[0].p;
        const char *from = j->a[1].p;
        for (int d = left - 1; d >= 0; d--) {
            to += rest % shape[d] * stride[0][d], from += rest % shape[d] * stride[1][d];
            rest /= shape[d];
        }
        if (across) {
            int64_t r = place / beside * high, c = place % beside * BLOCK_COLUMNS;
            to += r * stride[0][nd - 2] + c * size, from += r * stride[1][nd - 2] + c * stride[1][nd - 1];
            K(transpose_block)(to, stride[0][nd - 2], from, stride[1][nd - 1], stride[1][nd - 2], LEAST(high, rows - r),
                LEAST(BLOCK_COLUMNS, n - c), size);
            at++;
        } else {
            int64_t run = LEAST(n - place, last - at);
            K(copy_run)(to + place * stride[0][nd - 1], stride[0][nd - 1], from + place * stride[1][nd - 1], stride[1][nd - 1], run, size);
            at += run;
        }
    }
}
#undef BLOCK_BYTES
#undef BLOCK_COLUMNS
#undef BY_SIZE

/* i: rows, size of an output's row in bytes, where these inputs begin in it, the size of a row of each. a: output, inputs, whose
   rows lie beside each other in those of the output. A part writes some of the bytes. */
static void K(join)(const job *j, int64_t part)
{
    int64_t inputs = j->count - 1, width = 0, first, last;
    const int64_t *sizes = j->i + 3;
    for (int64_t k = 0; k < inputs; k++)
        width += sizes[k];
    share(j->i[0] * width, 4096, j, part, &first, &last);
    for (int64_t row = width ? first / width : 0, at = first - row * width; first < last; row++, at = 0)
        for (int64_t k = 0, begin = 0; k < inputs && first < last; begin += sizes[k++]) {
            int64_t n = LEAST(begin + sizes[k] - at, last - first);
            if (n <= 0)
                continue;
            K(copy_bytes)(j->a[0].p + row * j->i[1] + j->i[2] + at, j->a[1 + k].p + row * sizes[k] + at - begin, n);
            first += n, at += n;
        }
}

/* i: size, length, inner. a: output, input: reversed along a dim. */
static void K(flip)(const job *j, int64_t part)
{
    int64_t size = j->i[0], n = j->i[1], inner = j->i[2], bytes = size * inner, first, last;
    share(j->a[0].size / (n * inner), 1, j, part, &first, &last);
    for (int64_t r = first; r < last; r++) {
        char *o = j->a[0].p + r * n * bytes;
        const char *x = j->a[1].p + r * n * bytes;
#define FLIP(type)                                                                                                                \
    for (int64_t k = 0; k < n; k++)                                                                                               \
        ((type *)o)[k] = ((const type *)x)[n - 1 - k];
        if (inner > 1)
            for (int64_t k = 0; k < n; k++)
                memcpy(o + k * bytes, x + (n - 1 - k) * bytes, (size_t)bytes);
        else if (size == 1)
            FLIP(uint8_t)
        else if (size == 2)
            FLIP(uint16_t)
        else if (size == 4)
            FLIP(uint32_t)
        else
            FLIP(uint64_t)
#undef FLIP
    }
}

/* i: size, rows, columns, diagonal, whether it is the upper one. a: output, input [many, rows, columns]. */
static void K(triangle)(const job *j, int64_t part)
{
    int64_t size = j->i[0], columns = j->i[2], first, last;
    share(j->a[0].size / columns, 1, j, part, &first, &last);
    for (int64_t r = first; r < last; r++) {
        int64_t at = r % j->i[1] + j->i[3] + !j->i[4];
        at = at < 0 ? 0 : at > columns ? columns : at;
        char *o = j->a[0].p + r * columns * size;
        const char *x = j->a[1].p + r * columns * size;
        size_t left = (size_t)(at * size), right = (size_t)((columns - at) * size);
        if (j->i[4]) {
            memset(o, 0, left);
            memcpy(o + left, x + left, right);
        } else {
            memcpy(o, x, left);
            memset(o + left, 0, right);
        }
    }
}

/* a: [parts] of int64: how many bytes of the mask are set; mask. */
static void K(masked_count)(const job *j, int64_t part)
{
    int64_t first, last, made = 0;
    const uint8_t *mask = (const uint8_t *)j->a[1].p;
    share(j->a[1].size, 64, j, part, &first, &last);
    for (int64_t k = first; k < last; k++)
        made += mask[k] != 0;
    ((int64_t *)j->a[0].p)[part] = made;
}

/* i: size. a: output, mask, elements, [parts] of int64: where each part begins to write. */
static void K(masked_take)(const job *j, int64_t part)
{
    int64_t first, last, at = ((const int64_t *)j->a[3].p)[part], end = part + 1 < j->parts ? ((const int64_t *)j->a[3].p)[part + 1] : j->a[0].size;
    const uint8_t *mask = (const uint8_t *)j->a[1].p;
    share(j->a[1].size, 64, j, part, &first, &last);
    /* Each element is written, and the place moves on where it is wanted: no branch to mispredict. */
#define TAKE(type)                                                                                                                \
    {                                                                                                                             \
        const type *x = (const type *)j->a[2].p;                                                                                  \
        type *o = (type *)j->a[0].p;                                                                                              \
        for (int64_t k = first; k < last && at < end; k++) {                                                                      \
            o[at] = x[k];                                                                                                         \
            at += mask[k] != 0;                                                                                                   \
        }                                                                                                                         \
    }
    switch (j->i[0]) {
    case 1: TAKE(uint8_t) break;
    case 2: TAKE(uint16_t) break;
    case 4: TAKE(uint32_t) break;
    default: TAKE(uint64_t) break;
    }
#undef TAKE
}

/* i: size, input height and width, output height and width. a: output, input, indices of rows, of columns. */
static void K(nearest)(const job *j, int64_t part)
{
    int64_t size = j->i[0], h = j->i[1], w = j->i[2], oh = j->i[3], ow = j->i[4], first, last;
    const int64_t *of_row = (const int64_t *)j->a[2].p, *of_column = (const int64_t *)j->a[3].p;
    share(j->a[0].size / ow, oh, j, part, &first, &last);
    for (int64_t r = first; r < last; r++) {
        int64_t y = r % oh;
        char *o = j->a[0].p + r * ow * size;
        if (y && r > first && of_row[y] == of_row[y - 1]) {
            memcpy(o, o - ow * size, (size_t)(ow * size));
            continue;
        }
        const char *x = j->a[1].p + (r / oh * h + of_row[y]) * w * size;
#define NEAREST(type)                                                                                                             \
    for (int64_t k = 0; k < ow; k++)                                                                                              \
        ((type *)o)[k] = ((const type *)x)[of_column[k]];
        if (size == 1)
            NEAREST(uint8_t)
        else if (size == 2)
            NEAREST(uint16_t)
        else if (size == 4)
            NEAREST(uint32_t)
        else
            NEAREST(uint64_t)
#undef NEAREST
    }
}

/* a: output [how many, ndim] of int64: where the mask is set; mask, [parts] of int64: where each part begins to write. */
static void K(coordinates)(const job *j, int64_t part)
{
    const array *mask = &j->a[1];
    int64_t first, last, nd = mask->ndim, at[MAX_DIMS], n = mask->shape[nd - 1];
    int64_t *o = (int64_t *)j->a[0].p + ((const int64_t *)j->a[2].p)[part] * nd;
    share(mask->size, 64, j, part, &first, &last);
    for (int64_t k = first; k < last;) {
        int64_t rest = k / n, inner = k % n, stop = LEAST(n, inner + last - k);
        const uint8_t *row = (const uint8_t *)mask->p + k - inner;
        for (int64_t d = nd - 2; d >= 0; d--)
            at[d] = rest % mask->shape[d], rest /= mask->shape[d];
        k += stop - inner;
        for (; inner < stop; inner++)
            if (row[inner]) {
                for (int64_t d = 0; d < nd - 1; d++)
                    o[d] = at[d];
                o[nd - 1] = inner;
                o += nd;
            }
    }
}

/* i: rows, rows of a stretch as a power of two. a: the numbers of the index's elements, sorted by the stretch that they fall into,
   where those of each stretch begin [stretches + 1], a byte: an index is out of range; index. One part. */
static void K(by_stretches)(const job *j, int64_t part)
{
    int64_t *order = (int64_t *)j->a[0].p, *begins = (int64_t *)j->a[1].p, stretches = j->a[1].size - 1, n = j->a[3].size;
    const int64_t *index = (const int64_t *)j->a[3].p;
    (void)part;
    memset(begins, 0, (size_t)j->a[1].size * sizeof(int64_t));
    for (int64_t k = 0; k < n; k++) {
        if ((uint64_t)index[k] >= (uint64_t)j->i[0]) {
            j->a[2].p[0] = 1;
            return;
        }
        begins[index[k] >> j->i[1]]++;
    }
    for (int64_t s = 0, at = 0; s <= stretches; s++) {
        int64_t count = begins[s];
        begins[s] = at;
        at += count;
    }
    for (int64_t k = 0; k < n; k++)
        order[begins[index[k] >> j->i[1]]++] = k;
    /* Each place is now where the next stretch begins. */
    memmove(begins + 1, begins, (size_t)stretches * sizeof(int64_t));
    begins[0] = 0;
}
