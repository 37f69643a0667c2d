/* Normalisation of rows, of groups of channels and of batches. Arrays are row-major, of type T; i[0] is that type. */

/* i: type, length, has a scale, has a shift, whether it is the root of the mean square. f: eps.
   a: output, means, reciprocal deviations, input, scale, shift. */
static void V(layer_norm)(const job *j, int64_t part)
{
    int64_t n = j->i[1], first, last;
    const T *scale = j->i[2] ? (const T *)j->a[4].p : NULL, *shift = j->i[3] ? (const T *)j->a[5].p : NULL;
    share(j->a[0].size / n, 1, j, part, &first, &last);
    for (int64_t r = first; r < last; r++) {
        const T *x = (const T *)j->a[3].p + r * n;
        T *o = (T *)j->a[0].p + r * n, mean = j->i[4] ? 0 : (T)(V(sum)(x, n) / n);
        T factor = (T)(1 / sqrt(V(sum_of_products)(x, mean, x, mean, n) / n + j->f[0]));
        ((T *)j->a[1].p)[r] = mean, ((T *)j->a[2].p)[r] = factor;
        if (scale && shift)
            for (int64_t k = 0; k < n; k++)
                o[k] = (x[k] - mean) * factor * scale[k] + shift[k];
        else if (scale)
            for (int64_t k = 0; k < n; k++)
                o[k] = (x[k] - mean) * factor * scale[k];
        else
            for (int64_t k = 0; k < n; k++)
                o[k] = (x[k] - mean) * factor + (shift ? shift[k] : 0);
    }
}

/* i: type, length, has a scale, wants the input's gradient, wants those of scale and shift.
   a: gradient of the input, [parts, 2, length] of T for scale and shift, gradient, input, means, reciprocal deviations, scale. */
static void V(layer_norm_backward)(const job *j, int64_t part)
{
    int64_t n = j->i[1], first, last;
    const T *scale = j->i[2] ? (const T *)j->a[6].p : NULL;
    T *sums = (T *)j->a[1].p + part * 2 * n;
    if (j->i[4])
        memset(sums, 0, 2 * n * sizeof(T));
    share(j->a[3].size / n, 1, j, part, &first, &last);
    for (int64_t r = first; r < last; r++) {
        const T *g = (const T *)j->a[2].p + r * n, *x = (const T *)j->a[3].p + r * n;
        T mean = ((const T *)j->a[4].p)[r], factor = ((const T *)j->a[5].p)[r];
        if (j->i[4]) {
            T *of_shift = sums + n;
            for (int64_t k = 0; k < n; k++) {
                sums[k] += g[k] * ((x[k] - mean) * factor);
                of_shift[k] += g[k];
            }
        }
        if (!j->i[3])
            continue;
        T *o = (T *)j->a[0].p + r * n;
        const T *each = g;
        if (scale) {
            for (int64_t k = 0; k < n; k++)
                o[k] = g[k] * scale[k];
            each = o;
        }
        T level = (T)(V(sum)(each, n) / n), slope = (T)(V(sum_of_products)(each, 0, x, mean, n) / n) * factor * factor;
        for (int64_t k = 0; k < n; k++)
            o[k] = (each[k] - level - (x[k] - mean) * slope) * factor;
    }
}

/* i: type, channels of a group, area, groups, has a scale, has a shift. f: eps.
   a: output, means, reciprocal deviations, input [rows, channels of a group, area], scale, shift [channels]. */
static void V(group_norm)(const job *j, int64_t part)
{
    int64_t channels = j->i[1], area = j->i[2], groups = j->i[3], n = channels * area, first, last;
    share(j->a[0].size / n, 1, j, part, &first, &last);
    for (int64_t r = first; r < last; r++) {
        const T *x = (const T *)j->a[3].p + r * n;
        T *o = (T *)j->a[0].p + r * n, mean = (T)(V(sum)(x, n) / n);
        T factor = (T)(1 / sqrt(V(sum_of_products)(x, mean, x, mean, n) / n + j->f[0]));
        ((T *)j->a[1].p)[r] = mean, ((T *)j->a[2].p)[r] = factor;
        for (int64_t c = 0; c < channels; c++) {
            int64_t channel = r % groups * channels + c;
            T scale = j->i[4] ? ((const T *)j->a[4].p)[channel] * factor : factor;
            T shift = j->i[5] ? ((const T *)j->a[5].p)[channel] : 0;
            for (int64_t k = c * area; k < (c + 1) * area; k++)
                o[k] = (x[k] - mean) * scale + shift;
        }
    }
}

/* i: type, channels of a group, area, groups, has a scale, wants the input's gradient. a: gradient of the input, sums for scale and
   shift [rows, channels of a group], gradient, input [rows, channels of a group, area], means, reciprocal deviations, scale. */
static void V(group_norm_backward)(const job *j, int64_t part)
{
    int64_t channels = j->i[1], area = j->i[2], groups = j->i[3], n = channels * area, first, last;
    share(j->a[4].size / n, 1, j, part, &first, &last);
    for (int64_t r = first; r < last; r++) {
        const T *g = (const T *)j->a[3].p + r * n, *x = (const T *)j->a[4].p + r * n;
        T *o = (T *)j->a[0].p + r * n, *along = (T *)j->a[1].p + r * channels, *sums = (T *)j->a[2].p + r * channels;
        T mean = ((const T *)j->a[5].p)[r], factor = ((const T *)j->a[6].p)[r];
        const T *scale = j->i[4] ? (const T *)j->a[7].p + r % groups * channels : NULL;
        double level = 0, slope = 0;
        for (int64_t c = 0; c < channels; c++) {
            double sum = V(sum)(g + c * area, area), more = V(sum_of_products)(g + c * area, 0, x + c * area, mean, area) * factor;
            sums[c] = (T)sum, along[c] = (T)more;
            level += scale ? sum * scale[c] : sum;
            slope += scale ? more * scale[c] : more;
        }
        if (!j->i[5])
            continue;
        T taken = (T)(level / (double)n), tilt = (T)(slope / (double)n * factor);
        for (int64_t c = 0; c < channels; c++) {
            T each = scale ? scale[c] : 1;
            for (int64_t k = c * area; k < (c + 1) * area; k++)
                o[k] = (g[k] * each - taken - (x[k] - mean) * tilt) * factor;
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
