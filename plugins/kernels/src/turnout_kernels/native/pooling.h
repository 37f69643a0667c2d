/* Windows of planes [height, width] of T, row-major, as many as there are images and channels. i[0] is the type. */

/* i: type, input height and width, output height and width, kernel, stride, padding, dilation (two each). a: output, indices in the
   plane, input. The first of equal elements, or the last nan. */
static void V(max_pool)(const job *j, int64_t part)
{
    int64_t h = j->i[1], w = j->i[2], oh = j->i[3], ow = j->i[4], kh = j->i[5], kw = j->i[6], sh = j->i[7], sw = j->i[8];
    int64_t ph = j->i[9], pw = j->i[10], dh = j->i[11], dw = j->i[12], first, last;
    share(j->a[0].size / ow, oh, j, part, &first, &last);
    for (int64_t r = first; r < last; r++) {
        const T *x = (const T *)j->a[2].p + r / oh * h * w;
        int64_t top = r % oh * sh - ph;
        for (int64_t start = 0; start < ow; start += CHUNK) {
            int64_t width = LEAST(CHUNK, ow - start);
            T best[CHUNK];
            int32_t where[CHUNK];
            for (int64_t k = 0; k < width; k++)
                best[k] = -INFINITY, where[k] = -1;
            for (int64_t ky = 0; ky < kh; ky++) {
                int64_t line = top + ky * dh;
                if (line < 0 || line >= h)
                    continue;
                for (int64_t kx = 0; kx < kw; kx++) {
                    int64_t shift = kx * dw - pw, from, to;
                    V(inside)(shift, sw, w, ow, &from, &to);
                    from = LONGEST(from, start) - start, to = LEAST(to, start + width) - start;
                    const T *in = x + line * w + shift + start * sw;
                    int32_t place = (int32_t)(line * w + shift + start * sw);
#define WINDOW(step)                                                                                                              \
    for (int64_t k = from; k < to; k++) {                                                                                         \
        T v = in[k * (step)];                                                                                                     \
        int more = (where[k] < 0) | (v > best[k]) | (v != v);                                            \
        best[k] = more ? v : best[k];                                                                                             \
        where[k] = more ? place + (int32_t)(k * (step)) : where[k];                                                               \
    }
                    if (sw == 1)
                        WINDOW(1)
                    else if (sw == 2)
                        WINDOW(2)
                    else
                        WINDOW(sw)
#undef WINDOW
                }
            }
            memcpy((T *)j->a[0].p + r * ow + start, best, (size_t)width * sizeof(T));
            for (int64_t k = 0; k < width; k++)
                ((int64_t *)j->a[1].p)[r * ow + start + k] = where[k];
        }
    }
}

/* i: as above without dilation, whether what is padded counts, a divisor or 0. a: output, input. */
static void V(mean_pool)(const job *j, int64_t part)
{
    int64_t h = j->i[1], w = j->i[2], oh = j->i[3], ow = j->i[4], kh = j->i[5], kw = j->i[6], sh = j->i[7], sw = j->i[8];
    int64_t ph = j->i[9], pw = j->i[10], first, last;
    share(j->a[0].size / ow, oh, j, part, &first, &last);
    for (int64_t r = first; r < last; r++) {
        const T *x = (const T *)j->a[1].p + r / oh * h * w;
        T *o = (T *)j->a[0].p + r * ow;
        int64_t top = r % oh * sh - ph, end = LEAST(top + kh, h + ph), high = LONGEST(top, 0), low = LEAST(end, h);
        for (int64_t k = 0; k < ow; k++)
            o[k] = 0;
        for (int64_t line = high; line < low; line++)
            for (int64_t kx = 0; kx < kw; kx++) {
                int64_t shift = kx - pw, from, to;
                V(inside)(shift, sw, w, ow, &from, &to);
                const T *in = x + line * w + shift;
                if (sw == 1)
                    for (int64_t k = from; k < to; k++)
                        o[k] += in[k];
                else if (sw == 2)
                    for (int64_t k = from; k < to; k++)
                        o[k] += in[k * 2];
                else
                    for (int64_t k = from; k < to; k++)
                        o[k] += in[k * sw];
            }
        for (int64_t k = 0; k < ow; k++) {
            int64_t left = k * sw - pw, right = LEAST(left + kw, w + pw);
            int64_t count = j->i[12] ? j->i[12] : j->i[11] ? (end - top) * (right - left) : (low - high) * (LEAST(right, w) - LONGEST(left, 0));
            o[k] /= (T)count;
        }
    }
}

/* i: type, height, width, those of the output. a: output, sums [parts, width] in double, input. Each element is the mean of a
   window; windows share out a plane, and may overlap by a line. */
static void V(mean_windows)(const job *j, int64_t part)
{
    int64_t h = j->i[1], w = j->i[2], oh = j->i[3], ow = j->i[4], first, last;
    double *sums = (double *)j->a[1].p + part * w;
    share(j->a[0].size / ow, 1, j, part, &first, &last);
    for (int64_t r = first; r < last; r++) {
        const T *x = (const T *)j->a[2].p + r / oh * h * w;
        T *o = (T *)j->a[0].p + r * ow;
        int64_t top = r % oh * h / oh, end = ((r % oh + 1) * h + oh - 1) / oh;
        if (ow == 1) {
            o[0] = (T)(V(sum)(x + top * w, (end - top) * w) / (double)((end - top) * w));
            continue;
        }
        for (int64_t k = 0; k < w; k++)
            sums[k] = x[top * w + k];
        for (int64_t line = top + 1; line < end; line++)
            for (int64_t k = 0; k < w; k++)
                sums[k] += x[line * w + k];
        for (int64_t c = 0; c < ow; c++) {
            int64_t left = c * w / ow, right = ((c + 1) * w + ow - 1) / ow;
            double sum = sums[left];
            for (int64_t k = left + 1; k < right; k++)
                sum += sums[k];
            o[c] = (T)(sum / (double)((end - top) * (right - left)));
        }
    }
}
