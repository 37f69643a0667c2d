/* Kernels along a dim. Arrays are row-major, and all of type T unless it says otherwise; i[0] is that type. */

/* 64 bytes of T, which a compiler cuts into the registers that there are; at any address. */
typedef T V(lanes) __attribute__((vector_size(64)));
typedef T V(anywhere) __attribute__((vector_size(64), aligned(sizeof(T)), may_alias));
#define LANES ((int64_t)(64 / sizeof(T)))
#define AT(p, m) (*(const V(anywhere) *)((p) + (m) * LANES))

/* Sums of four registers for 2048 elements, then in double: the error does not grow with the length. */
static double V(total)(const T *x, int64_t n)
{
    double whole = 0;
    int64_t k = 0;
    while (n - k >= 4 * LANES) {
        V(lanes) a = {0}, b = {0}, c = {0}, d = {0};
        T parts[64 / sizeof(T)];
        for (int64_t end = LEAST(n, k + 2048); k + 4 * LANES <= end; k += 4 * LANES)
            a += AT(x + k, 0), b += AT(x + k, 1), c += AT(x + k, 2), d += AT(x + k, 3);
        a = (a + b) + (c + d);
        memcpy(parts, &a, sizeof parts);
        for (int64_t w = LANES / 2; w; w /= 2)
            for (int64_t m = 0; m < w; m++)
                parts[m] += parts[m + w];
        whole += parts[0];
    }
    for (; k < n; k++)
        whole += x[k];
    return whole;
}

/* The sum of (x - middle) * (y - middle_of_y) */
static double V(product)(const T *x, T middle, const T *y, T middle_of_y, int64_t n)
{
    double whole = 0;
    int64_t k = 0;
    V(lanes) p, q;
    for (int64_t m = 0; m < LANES; m++)
        p[m] = middle, q[m] = middle_of_y;
    while (n - k >= 4 * LANES) {
        V(lanes) a = {0}, b = {0}, c = {0}, d = {0};
        T parts[64 / sizeof(T)];
        for (int64_t end = LEAST(n, k + 2048); k + 4 * LANES <= end; k += 4 * LANES) {
            a += (AT(x + k, 0) - p) * (AT(y + k, 0) - q);
            b += (AT(x + k, 1) - p) * (AT(y + k, 1) - q);
            c += (AT(x + k, 2) - p) * (AT(y + k, 2) - q);
            d += (AT(x + k, 3) - p) * (AT(y + k, 3) - q);
        }
        a = (a + b) + (c + d);
        memcpy(parts, &a, sizeof parts);
        for (int64_t w = LANES / 2; w; w /= 2)
            for (int64_t m = 0; m < w; m++)
                parts[m] += parts[m + w];
        whole += parts[0];
    }
    for (; k < n; k++)
        whole += (x[k] - middle) * (y[k] - middle_of_y);
    return whole;
}
#undef LANES
#undef AT

/* The largest of x times sign, times sign; nan if there is one. */
static T V(extreme)(const T *x, int64_t n, T sign)
{
    T lanes[64], made = sign * x[0];
    int64_t k = 0;
    if (n >= 64) {
        for (int m = 0; m < 64; m++)
            lanes[m] = sign * x[m];
        for (k = 64; k + 64 <= n; k += 64)
            for (int m = 0; m < 64; m++) {
                T v = sign * x[k + m];
                lanes[m] = lanes[m] >= v || lanes[m] != lanes[m] ? lanes[m] : v;
            }
        made = lanes[0];
        for (int m = 1; m < 64; m++)
            made = made >= lanes[m] || made != made ? made : lanes[m];
    }
    for (; k < n; k++)
        made = made >= sign * x[k] || made != made ? made : sign * x[k];
    return sign * made;
}

/* i: type, length, whether it is the logarithm. a: output, input. The maximum is taken away first, so nothing overflows. */
static void V(softmax)(const job *j, int64_t part)
{
    int64_t n = j->i[1], first, last;
    share(j->a[0].size / n, 1, j, part, &first, &last);
    for (int64_t r = first; r < last; r++) {
        const T *x = (const T *)j->a[1].p + r * n;
        T *o = (T *)j->a[0].p + r * n, most = V(extreme)(x, n, 1);
        if (j->i[2]) {
            double sum = 0;
            T e[CHUNK];
            for (int64_t at = 0; at < n; at += CHUNK) {
                int64_t m = LEAST(CHUNK, n - at);
                for (int64_t k = 0; k < m; k++)
                    e[k] = V(expo)(x[at + k] - most);
                sum += V(total)(e, m);
            }
            T less = (T)log(sum);
            for (int64_t k = 0; k < n; k++)
                o[k] = x[k] - most - less;
        } else {
            for (int64_t k = 0; k < n; k++)
                o[k] = V(expo)(x[k] - most);
            T factor = (T)(1 / V(total)(o, n));
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
            T sum = (T)V(total)(g, n);
            for (int64_t k = 0; k < n; k++)
                o[k] = g[k] - V(expo)(y[k]) * sum;
        } else {
            T sum = (T)V(product)(g, 0, y, 0, n);
            for (int64_t k = 0; k < n; k++)
                o[k] = (g[k] - sum) * y[k];
        }
    }
}

/* i: type, length, has a scale, has a shift, whether it is the root of the mean square. f: eps.
   a: output, means, reciprocal deviations, input, scale, shift. */
static void V(layer_norm)(const job *j, int64_t part)
{
    int64_t n = j->i[1], first, last;
    const T *scale = j->i[2] ? (const T *)j->a[4].p : NULL, *shift = j->i[3] ? (const T *)j->a[5].p : NULL;
    share(j->a[0].size / n, 1, j, part, &first, &last);
    for (int64_t r = first; r < last; r++) {
        const T *x = (const T *)j->a[3].p + r * n;
        T *o = (T *)j->a[0].p + r * n, mean = j->i[4] ? 0 : (T)(V(total)(x, n) / n);
        T factor = (T)(1 / sqrt(V(product)(x, mean, x, mean, n) / n + j->f[0]));
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
        T level = (T)(V(total)(each, n) / n), slope = (T)(V(product)(each, 0, x, mean, n) / n) * factor * factor;
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
        T *o = (T *)j->a[0].p + r * n, mean = (T)(V(total)(x, n) / n);
        T factor = (T)(1 / sqrt(V(product)(x, mean, x, mean, n) / n + j->f[0]));
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

/* i: type, what, length. f: a factor of the result. a: results, input; for a product, a second input.
   The last row may be shorter. 0 sum, 1 largest, 2 smallest, 3 sum of squares, 4 root of that, 5 logarithm of the sum of powers,
   6 sum of squared differences. */
static void V(reduce_rows)(const job *j, int64_t part)
{
    int64_t n = j->i[2], size = j->a[1].size, first, last;
    share((size + n - 1) / n, 1, j, part, &first, &last);
    for (int64_t r = first; r < last; r++) {
        const T *x = (const T *)j->a[1].p + r * n;
        int64_t m = LEAST(n, size - r * n);
        double made = 0;
        T e[CHUNK], most;
        switch (j->i[1]) {
        case 0: made = V(total)(x, m); break;
        case 1: made = V(extreme)(x, m, 1); break;
        case 2: made = V(extreme)(x, m, -1); break;
        case 3: made = V(product)(x, 0, x, 0, m); break;
        case 4: made = sqrt(V(product)(x, 0, x, 0, m)); break;
        case 5:
            most = V(extreme)(x, m, 1);
            most = most - most == 0 ? most : 0;
            for (int64_t at = 0; at < m; at += CHUNK) {
                int64_t here = LEAST(CHUNK, m - at);
                for (int64_t k = 0; k < here; k++)
                    e[k] = V(expo)(x[at + k] - most);
                made += V(total)(e, here);
            }
            made = log(made) + most;
            break;
        default:
            for (int64_t at = 0; at < m; at += CHUNK) {
                int64_t here = LEAST(CHUNK, m - at);
                const T *y = (const T *)j->a[2].p + r * n + at;
                for (int64_t k = 0; k < here; k++)
                    e[k] = x[at + k] - y[k];
                made += V(product)(e, 0, e, 0, here);
            }
        }
        ((T *)j->a[0].p)[r] = (T)(made * j->f[0]);
    }
}

/* i: type, length, inner. a: output, input [outer, length, inner]. Sums are kept in double. */
static void V(cumulate)(const job *j, int64_t part)
{
    int64_t n = j->i[1], inner = j->i[2], outer = n * inner > 0 ? j->a[0].size / (n * inner) : 0, first, last;
    const T *x = (const T *)j->a[1].p;
    T *o = (T *)j->a[0].p;
    if (inner == 1) {
        share(outer, 8, j, part, &first, &last);
        int64_t r = first;
        for (; r + 8 <= last; r += 8) { /* eight sums that do not wait for each other */
            double s[8] = {0};
            for (int64_t k = 0; k < n; k++)
                for (int m = 0; m < 8; m++)
                    o[(r + m) * n + k] = (T)(s[m] += x[(r + m) * n + k]);
        }
        for (; r < last; r++) {
            double s = 0;
            for (int64_t k = 0; k < n; k++)
                o[r * n + k] = (T)(s += x[r * n + k]);
        }
        return;
    }
    double s[CHUNK];
    int64_t blocks = (inner + CHUNK - 1) / CHUNK;
    share(outer * blocks, 1, j, part, &first, &last);
    for (int64_t b = first; b < last; b++) {
        int64_t at = b % blocks * CHUNK, m = LEAST(CHUNK, inner - at);
        memset(s, 0, sizeof s);
        for (int64_t k = 0; k < n; k++) {
            int64_t place = (b / blocks * n + k) * inner + at;
            for (int64_t c = 0; c < m; c++)
                o[place + c] = (T)(s[c] += x[place + c]);
        }
    }
}

/* i: type, length of the output, inner, length of the index. a: output, [parts] of bytes: an index was out of range; index, source,
   start: the output begins as a copy of that. Adds the source at its indices along a dim, in their order. */
static void V(scatter)(const job *j, int64_t part)
{
    int64_t n = j->i[1], inner = j->i[2], count = j->i[3], outer = n * inner > 0 ? j->a[0].size / (n * inner) : 0, first, last;
    int64_t block = outer > 1 ? inner : 64, blocks = (inner + block - 1) / block;
    const int64_t *index = (const int64_t *)j->a[2].p;
    const T *x = (const T *)j->a[3].p, *start = (const T *)j->a[4].p;
    T *o = (T *)j->a[0].p;
    share(outer * blocks, 1, j, part, &first, &last);
    for (int64_t b = first; b < last; b++) {
        int64_t from = b % blocks * block, to = LEAST(from + block, inner), r = b / blocks;
        if (inner == 1) {
            T *row = o + r * n;
            memcpy(row, start + r * n, (size_t)n * sizeof(T));
            for (int64_t k = r * count; k < (r + 1) * count; k++)
                if ((uint64_t)index[k] >= (uint64_t)n)
                    j->a[1].p[part] = 1;
                else
                    row[index[k]] += x[k];
            continue;
        }
        for (int64_t k = r * n; k < (r + 1) * n; k++)
            memcpy(o + k * inner + from, start + k * inner + from, (size_t)(to - from) * sizeof(T));
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

/* i: type, rows of the output, length. f: a factor. a: output, index, source. Adds rows of the source to rows of the output, in
   their order. Indices are in range. A part does some of the columns. */
static void V(add_rows)(const job *j, int64_t part)
{
    int64_t n = j->i[2], first, last;
    T factor = (T)j->f[0];
    share(n, 16, j, part, &first, &last);
    for (int64_t k = 0; k < j->a[1].size; k++) {
        T *o = (T *)j->a[0].p + ((const int64_t *)j->a[1].p)[k] * n;
        const T *x = (const T *)j->a[2].p + k * n;
        for (int64_t c = first; c < last; c++)
            o[c] += factor * x[c];
    }
}
