/* Images: planes [height, width] of T, row-major, as many as there are images and channels. i[0] is the type. */

/* The outputs of a line whose input lies inside: input = output * stride + shift. */
static void V(inside)(int64_t shift, int64_t stride, int64_t inputs, int64_t outputs, int64_t *first, int64_t *last)
{
    int64_t low = shift >= 0 ? 0 : (-shift + stride - 1) / stride, high = inputs - 1 - shift < 0 ? 0 : (inputs - 1 - shift) / stride + 1;
    *last = LEAST(high, outputs);
    *first = LEAST(low, *last);
}

/* i: type, channels, input height and width, output height and width, kernel, stride, padding, dilation (two each), has a bias.
   a: output, input, weights [channels, kernel], bias. */
static void V(depthwise)(const job *j, int64_t part)
{
    int64_t channels = j->i[1], h = j->i[2], w = j->i[3], oh = j->i[4], ow = j->i[5], kh = j->i[6], kw = j->i[7];
    int64_t sh = j->i[8], sw = j->i[9], ph = j->i[10], pw = j->i[11], dh = j->i[12], dw = j->i[13], first, last;
    share(j->a[0].size / (oh * ow), 1, j, part, &first, &last);
    for (int64_t plane = first; plane < last; plane++) {
        const T *x = (const T *)j->a[1].p + plane * h * w, *weights = (const T *)j->a[2].p + plane % channels * kh * kw;
        T *out = (T *)j->a[0].p + plane * oh * ow, start = j->i[14] ? ((const T *)j->a[3].p)[plane % channels] : 0;
        for (int64_t y = 0; y < oh; y++) {
            T *o = out + y * ow;
            for (int64_t k = 0; k < ow; k++)
                o[k] = start;
            for (int64_t ky = 0; ky < kh; ky++) {
                int64_t line = y * sh - ph + ky * dh;
                if (line < 0 || line >= h)
                    continue;
                const T *in = x + line * w, *by = weights + ky * kw;
                if (kw == 3 && sw == 1 && dw == 1 && pw == 1 && ow == w && w > 2) {
                    T b0 = by[0], b1 = by[1], b2 = by[2];
                    o[0] += b1 * in[0] + b2 * in[1];
                    for (int64_t k = 1; k < w - 1; k++)
                        o[k] += b0 * in[k - 1] + b1 * in[k] + b2 * in[k + 1];
                    o[w - 1] += b0 * in[w - 2] + b1 * in[w - 1];
                    continue;
                }
                for (int64_t kx = 0; kx < kw; kx++) {
                    int64_t shift = kx * dw - pw, from, to;
                    T b = by[kx];
                    V(inside)(shift, sw, w, ow, &from, &to);
                    if (sw == 1)
                        for (int64_t k = from; k < to; k++)
                            o[k] += b * in[k + shift];
                    else
                        for (int64_t k = from; k < to; k++)
                            o[k] += b * in[k * sw + shift];
                }
            }
        }
    }
}

/* i: as above, but for the bias: wants the input's gradient, wants the weights'.
   a: gradients of the input and of the weights, gradient, input, weights. A part does some of the channels. */
static void V(depthwise_backward)(const job *j, int64_t part)
{
    int64_t channels = j->i[1], h = j->i[2], w = j->i[3], oh = j->i[4], ow = j->i[5], kh = j->i[6], kw = j->i[7];
    int64_t sh = j->i[8], sw = j->i[9], ph = j->i[10], pw = j->i[11], dh = j->i[12], dw = j->i[13], first, last;
    int64_t images = channels ? j->a[2].size / (oh * ow * channels) : 0;
    share(channels, 1, j, part, &first, &last);
    for (int64_t channel = first; channel < last; channel++)
        for (int64_t k = 0; k < kh * kw; k++) {
            double sum = 0;
            T weight = ((const T *)j->a[4].p)[channel * kh * kw + k];
            int64_t from, to, shift = k % kw * dw - pw;
            V(inside)(shift, sw, w, ow, &from, &to);
            for (int64_t image = 0; image < images; image++) {
                int64_t plane = image * channels + channel;
                const T *g = (const T *)j->a[2].p + plane * oh * ow, *x = (const T *)j->a[3].p + plane * h * w;
                T *o = (T *)j->a[0].p + plane * h * w;
                if (!k && j->i[14])
                    memset(o, 0, (size_t)(h * w) * sizeof(T));
                T lanes[16] = {0};
                for (int64_t y = 0; y < oh; y++) {
                    int64_t line = y * sh - ph + k / kw * dh;
                    if (line < 0 || line >= h)
                        continue;
                    const T *in = x + line * w + shift, *left = g + y * ow;
                    T *made = o + line * w + shift;
                    if (j->i[14] && sw == 1)
                        for (int64_t m = from; m < to; m++)
                            made[m] += weight * left[m];
                    else if (j->i[14])
                        for (int64_t m = from; m < to; m++)
                            made[m * sw] += weight * left[m];
                    if (!j->i[15])
                        continue;
                    int64_t m = from;
                    if (sw == 1)
                        for (; m + 16 <= to; m += 16)
                            for (int q = 0; q < 16; q++)
                                lanes[q] += in[m + q] * left[m + q];
                    for (; m < to; m++)
                        lanes[m & 15] += in[m * sw] * left[m];
                }
                for (int q = 0; q < 16; q++)
                    sum += lanes[q];
            }
            if (j->i[15])
                ((T *)j->a[1].p)[channel * kh * kw + k] = (T)sum;
        }
}

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

/* i: type, channels, area, whether the statistics are given. f: eps. a: output, mean and variance (divided by n) [channels],
   input [images, channels, area], scale, shift [channels]. A part does some of the channels, or, where statistics are given, some of
   the planes, in the order of memory. */
static void V(batch_norm)(const job *j, int64_t part)
{
    int64_t channels = j->i[1], area = j->i[2], images = j->a[3].size / (channels * area), first, last;
    T *means = (T *)j->a[1].p, *variances = (T *)j->a[2].p;
    if (j->i[3]) {
        share(images * channels, 1, j, part, &first, &last);
        for (int64_t p = first; p < last; p++) {
            int64_t c = p % channels;
            const T *x = (const T *)j->a[3].p + p * area;
            T *o = (T *)j->a[0].p + p * area, mean = means[c], shift = ((const T *)j->a[5].p)[c];
            T scale = (T)(1 / sqrt(variances[c] + j->f[0])) * ((const T *)j->a[4].p)[c];
            for (int64_t k = 0; k < area; k++)
                o[k] = (x[k] - mean) * scale + shift;
        }
        return;
    }
    share(channels, 1, j, part, &first, &last);
    for (int64_t c = first; c < last; c++) {
        double sum = 0, squares = 0;
        for (int64_t m = 0; m < images; m++)
            sum += V(sum)((const T *)j->a[3].p + (m * channels + c) * area, area);
        T mean = (T)(sum / (double)(images * area));
        for (int64_t m = 0; m < images; m++) {
            const T *x = (const T *)j->a[3].p + (m * channels + c) * area;
            squares += V(sum_of_products)(x, mean, x, mean, area);
        }
        means[c] = mean, variances[c] = (T)(squares / (double)(images * area));
        T scale = (T)(1 / sqrt(variances[c] + j->f[0])) * ((const T *)j->a[4].p)[c], shift = ((const T *)j->a[5].p)[c];
        for (int64_t m = 0; m < images; m++) {
            const T *x = (const T *)j->a[3].p + (m * channels + c) * area;
            T *o = (T *)j->a[0].p + (m * channels + c) * area;
            for (int64_t k = 0; k < area; k++)
                o[k] = (x[k] - mean) * scale + shift;
        }
    }
}

/* i: type, channels, area, wants the input's gradient, whether the statistics depend on the input. a: gradients of the input, of
   the scale and of the shift, gradient, input, means, reciprocal deviations, scale. A part does some of the channels. */
static void V(batch_norm_backward)(const job *j, int64_t part)
{
    int64_t channels = j->i[1], area = j->i[2], images = j->a[4].size / (channels * area), first, last;
    share(channels, 1, j, part, &first, &last);
    for (int64_t c = first; c < last; c++) {
        double sum = 0, along = 0, count = (double)(images * area);
        T mean = ((const T *)j->a[5].p)[c], factor = ((const T *)j->a[6].p)[c], scale = ((const T *)j->a[7].p)[c] * factor;
        for (int64_t m = 0; m < images; m++) {
            const T *g = (const T *)j->a[3].p + (m * channels + c) * area, *x = (const T *)j->a[4].p + (m * channels + c) * area;
            sum += V(sum)(g, area);
            along += V(sum_of_products)(g, 0, x, mean, area);
        }
        ((T *)j->a[1].p)[c] = (T)(along * factor);
        ((T *)j->a[2].p)[c] = (T)sum;
        if (!j->i[3])
            continue;
        T level = j->i[4] ? (T)(sum / count) : 0, slope = j->i[4] ? (T)(along / count * factor * factor) : 0;
        for (int64_t m = 0; m < images; m++) {
            const T *g = (const T *)j->a[3].p + (m * channels + c) * area, *x = (const T *)j->a[4].p + (m * channels + c) * area;
            T *o = (T *)j->a[0].p + (m * channels + c) * area;
            for (int64_t k = 0; k < area; k++)
                o[k] = (g[k] - level - (x[k] - mean) * slope) * scale;
        }
    }
}
