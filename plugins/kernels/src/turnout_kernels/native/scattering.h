/* Sums at places that an index names, in the order of the index. i[0] is the type. An output begins as `start`: an array of its
   shape, or one element for all. Each part copies what it adds to, which then is in the cache. */

static inline void V(begin)(T *o, const array *start, int64_t at, int64_t n)
{
    T first = *(const T *)start->p;
    if (start->size > 1)
        memcpy(o, (const T *)start->p + at, (size_t)n * sizeof(T));
    else
        for (int64_t k = 0; k < n; k++)
            o[k] = first;
}

/* i: type, length of the output, inner, length of the index. a: output, [parts] of bytes: an index was out of range; index, source,
   start. Adds the source at its indices along a dim. */
static void V(add_at)(const job *j, int64_t part)
{
    int64_t n = j->i[1], inner = j->i[2], count = j->i[3], outer = n * inner > 0 ? j->a[0].size / (n * inner) : 0, first, last;
    int64_t block = outer > 1 ? inner : 64, blocks = (inner + block - 1) / block;
    const int64_t *index = (const int64_t *)j->a[2].p;
    const T *x = (const T *)j->a[3].p;
    T *o = (T *)j->a[0].p;
    share(outer * blocks, 1, j, part, &first, &last);
    for (int64_t b = first; b < last; b++) {
        int64_t from = b % blocks * block, to = LEAST(from + block, inner), r = b / blocks;
        if (inner == 1) {
            T *row = o + r * n;
            uint64_t outside = 0; /* the highest bit is set if an index is negative, or greater than the last one */
            for (int64_t k = r * count; k < (r + 1) * count; k++)
                outside |= (uint64_t)index[k] | ((uint64_t)(n - 1) - (uint64_t)index[k]);
            if (outside >> 63) {
                j->a[1].p[part] = 1;
                return;
            }
            V(begin)(row, &j->a[4], r * n, n);
            for (int64_t k = r * count; k < (r + 1) * count; k++)
                row[index[k]] += x[k];
            continue;
        }
        for (int64_t k = r * n; k < (r + 1) * n; k++)
            V(begin)(o + k * inner + from, &j->a[4], k * inner + from, to - from);
        for (int64_t k = 0; k < count; k++)
            for (int64_t c = from; c < to; c++) {
                int64_t place = (r * count + k) * inner + c;
                if ((uint64_t)index[place] >= (uint64_t)n)
                    j->a[1].p[part] = 1;
                else
                    o[(r * n + index[place]) * inner + c] += x[place];
            }
    }
}

/* i: type, rows of the output, length, rows of a stretch as a power of two, how many blocks of columns. f: a factor. a: output,
   index, the numbers of its elements by stretches, where those of each stretch begin, source, start. Adds rows of the source to
   rows of the output. A part does a block of columns of a stretch of rows. */
static void V(add_rows_at)(const job *j, int64_t part)
{
    int64_t n = j->i[2], blocks = j->i[4], stretch = part / blocks, width = (n + 16 * blocks - 1) / (16 * blocks) * 16;
    int64_t from = part % blocks * width, to = LEAST(from + width, n);
    int64_t row = stretch << j->i[3], end = LEAST((stretch + 1) << j->i[3], j->i[1]);
    const int64_t *index = (const int64_t *)j->a[1].p, *order = (const int64_t *)j->a[2].p, *begins = (const int64_t *)j->a[3].p;
    T factor = (T)j->f[0], *out = (T *)j->a[0].p;
    if (from >= to)
        return;
    for (; row < end; row++)
        V(begin)(out + row * n + from, &j->a[5], row * n + from, to - from);
    for (int64_t k = begins[stretch]; k < begins[stretch + 1]; k++) {
        T *o = out + index[order[k]] * n;
        const T *x = (const T *)j->a[4].p + order[k] * n;
        for (int64_t c = from; c < to; c++)
            o[c] += factor * x[c];
    }
}
