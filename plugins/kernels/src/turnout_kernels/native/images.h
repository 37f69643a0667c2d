/* Interpolation of planes [height, width] of T, row-major, as many as there are images and channels. i[0] is the type. */

/* i: type, input height and width, output height and width. a: output, [parts, input width] of T for a line, input, then for rows and for
   columns: the indices [2, n] of two neighbours, their weights [2, n]. */
static void V(bilinear)(const job *j, int64_t part)
{
    int64_t h = j->i[1], w = j->i[2], oh = j->i[3], ow = j->i[4], first, last;
    const int64_t *of_row = (const int64_t *)j->a[3].p, *of_column = (const int64_t *)j->a[5].p;
    const T *by_row = (const T *)j->a[4].p, *by_column = (const T *)j->a[6].p;
    T *line = (T *)j->a[1].p + part * w;
    share(j->a[0].size / ow, oh, j, part, &first, &last);
    for (int64_t r = first; r < last; r++) {
        int64_t y = r % oh;
        const T *plane = (const T *)j->a[2].p + r / oh * h * w;
        const T *up = plane + of_row[y] * w, *down = plane + of_row[oh + y] * w;
        T a = by_row[y], b = by_row[oh + y], *o = (T *)j->a[0].p + r * ow;
        for (int64_t k = 0; k < w; k++)
            line[k] = a * up[k] + b * down[k];
        for (int64_t k = 0; k < ow; k++)
            o[k] = by_column[k] * line[of_column[k]] + by_column[ow + k] * line[of_column[ow + k]];
    }
}
