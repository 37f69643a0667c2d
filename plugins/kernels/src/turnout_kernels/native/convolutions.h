/* Convolutions and their gradients. T and V as everywhere; i[0] is the type. */

/* ---- of one channel each: planes [height, width] of T, row-major, as many as there are images and channels */

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

/* ---- of many channels, without columns of windows in memory

   A padded image is one line of memory: under a kernel element, all outputs of some rows find their inputs in that line, shifted.
   With a stride, the padded image is taken apart into as many images as there are remainders, each of which is such a line. What
   lies between two rows is computed, too, and not stored. A tile is BLOCK output channels times VECTORS_OF_TILE registers; its
   sums stay in registers for all inputs. */
#define BLOCK 8
#define VECTORS_OF_TILE 3
#define LANES ((int64_t)(VECTOR_BYTES / sizeof(T)))
#define TILE_WIDTH (VECTORS_OF_TILE * LANES)
#define MOST_TAPS 128
#define STRETCH ((int64_t)(3328 / sizeof(T))) /* of ROWS_AT_ONCE rows: they stay in the first-level cache */

#if VECTOR_REGISTERS >= 32
#define ROWS_AT_ONCE 8
#define EVERY_ROW(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
#else
#define ROWS_AT_ONCE 4
#define EVERY_ROW(X) X(0) X(1) X(2) X(3)
#endif

/* sums[BLOCK][TILE_WIDTH] of weights [depth][BLOCK] times lines: those of `inputs` channels, `plane` apart, each at all places. */
static void V(tile)(T *sums, const T *weights, const T *x, int64_t inputs, int64_t plane, const int64_t *places, int64_t taps)
{
    for (int64_t from = 0; from < BLOCK; from += ROWS_AT_ONCE) {
        const T *w = weights + from;
#define START(r) V(vector) a##r = {0}, b##r = {0}, c##r = {0};
        EVERY_ROW(START)
#undef START
        for (int64_t channel = 0; channel < inputs; channel++)
            for (int64_t tap = 0; tap < taps; tap++, w += BLOCK) {
                const T *at = x + channel * plane + places[tap];
                V(vector) p = *(const V(vector_anywhere) *)at, q = *(const V(vector_anywhere) *)(at + LANES);
                V(vector) r = *(const V(vector_anywhere) *)(at + 2 * LANES);
#define ADD(k) a##k += p * w[k], b##k += q * w[k], c##k += r * w[k];
                EVERY_ROW(ADD)
#undef ADD
            }
#define KEEP(r)                                                                                                           \
    memcpy(sums + (from + r) * TILE_WIDTH, &a##r, VECTOR_BYTES);                                                                  \
    memcpy(sums + (from + r) * TILE_WIDTH + LANES, &b##r, VECTOR_BYTES);                                                          \
    memcpy(sums + (from + r) * TILE_WIDTH + 2 * LANES, &c##r, VECTOR_BYTES);
        EVERY_ROW(KEEP)
#undef KEEP
    }
}

/* What a convolution does: numbers i[first] and following. */
typedef struct {
    int64_t groups, inputs, outputs, h, w, oh, ow, kh, kw, sh, sw, ph, pw, dh, dw, rows, bands, width, taps, places[MOST_TAPS];
    int phases, phase_y[MOST_TAPS], phase_x[MOST_TAPS];
} V(shape_of_convolution);

static void V(read_convolution)(V(shape_of_convolution) *s, const int64_t *i)
{
    s->groups = i[0], s->inputs = i[1], s->outputs = i[2], s->h = i[3], s->w = i[4], s->oh = i[5], s->ow = i[6];
    s->kh = i[7], s->kw = i[8], s->sh = i[9], s->sw = i[10], s->ph = i[11], s->pw = i[12], s->dh = i[13], s->dw = i[14];
    s->rows = i[15], s->bands = (s->oh + s->rows - 1) / s->rows;
    s->width = s->ow + (s->kw - 1) * s->dw / s->sw, s->taps = s->kh * s->kw, s->phases = 0;
}

/* The remainders that kernel elements fall into, and the place of each element in a plane of lines of `height` rows. */
static int64_t V(place_taps)(V(shape_of_convolution) *s, int64_t height)
{
    int64_t size = height * s->width;
    s->phases = 0;
    for (int64_t tap = 0; tap < s->taps; tap++) {
        int64_t y = tap / s->kw * s->dh, x = tap % s->kw * s->dw;
        int phase = 0;
        while (phase < s->phases && (s->phase_y[phase] != y % s->sh || s->phase_x[phase] != x % s->sw))
            phase++;
        if (phase == s->phases)
            s->phase_y[phase] = (int)(y % s->sh), s->phase_x[phase] = (int)(x % s->sw), s->phases++;
        s->places[tap] = phase * size + y / s->sh * s->width + x / s->sw;
    }
    return size * s->phases;
}

/* The lines of some output rows of one group of an image. */
static void V(fill_lines)(T *to, const V(shape_of_convolution) *s, const T *image, int64_t first, int64_t height)
{
    for (int64_t channel = 0; channel < s->inputs; channel++)
        for (int phase = 0; phase < s->phases; phase++)
            for (int64_t row = 0; row < height; row++, to += s->width) {
                int64_t y = (first + row) * s->sh + s->phase_y[phase] - s->ph, from, end, shift = s->phase_x[phase] - s->pw;
                V(inside)(shift, s->sw, s->w, s->width, &from, &end);
                if (y < 0 || y >= s->h)
                    from = end = 0;
                const T *line = image + (channel * s->h + y) * s->w;
                for (int64_t k = 0; k < from; k++)
                    to[k] = 0;
                if (s->sw == 1)
                    for (int64_t k = from; k < end; k++)
                        to[k] = line[k + shift];
                else if (s->sw == 2)
                    for (int64_t k = from; k < end; k++)
                        to[k] = line[2 * k + shift];
                else
                    for (int64_t k = from; k < end; k++)
                        to[k] = line[k * s->sw + shift];
                for (int64_t k = end; k < s->width; k++)
                    to[k] = 0;
            }
}

/* i: type, groups, input and output channels of a group, input height and width, output height and width, kernel, stride, padding,
   dilation (two each), output rows at a time, has a bias. a: output, [parts] of bytes: there was no memory; input, weights
   [groups, blocks, depth, BLOCK], bias. */
static void V(convolve)(const job *j, int64_t part)
{
    V(shape_of_convolution) s;
    V(read_convolution)(&s, j->i + 1);
    int64_t images = j->a[2].size / (s.groups * s.inputs * s.h * s.w), blocks = (s.outputs + BLOCK - 1) / BLOCK, first, last;
    int64_t most = s.rows + (s.kh - 1) * s.dh / s.sh, plane = V(place_taps)(&s, most), size = s.inputs * plane + TILE_WIDTH;
    T *lines = malloc((size_t)size * sizeof(T)), sums[BLOCK * 3 * VECTOR_BYTES / sizeof(T)];
    if (!lines) {
        j->a[1].p[part] = 1;
        return;
    }
    for (int64_t k = size - TILE_WIDTH; k < size; k++)
        lines[k] = 0;
    share(images * s.groups * s.bands, 1, j, part, &first, &last);
    for (int64_t task = first; task < last; task++) {
        int64_t y = task % s.bands * s.rows, rows = LEAST(s.rows, s.oh - y), group = task / s.bands % s.groups;
        int64_t image = task / s.bands / s.groups, end = (rows - 1) * s.width + s.ow;
        V(fill_lines)(lines, &s, (const T *)j->a[2].p + (image * s.groups + group) * s.inputs * s.h * s.w, y, most);
        for (int64_t at = 0; at < end; at += TILE_WIDTH)
            for (int64_t block = 0; block < blocks; block++) {
                const T *weights = (const T *)j->a[3].p + (group * blocks + block) * s.inputs * s.taps * BLOCK;
                V(tile)(sums, weights, lines + at, s.inputs, plane, s.places, s.taps);
                for (int64_t r = 0; r < LEAST(BLOCK, s.outputs - block * BLOCK); r++) {
                    int64_t channel = group * s.outputs + block * BLOCK + r;
                    T *o = (T *)j->a[0].p + (image * s.groups * s.outputs + channel) * s.oh * s.ow;
                    T bias = j->i[17] ? ((const T *)j->a[4].p)[channel] : 0;
                    for (int64_t k = at; k < LEAST(at + TILE_WIDTH, end);) {
                        int64_t row = k / s.width, x = k % s.width, n = LEAST(s.ow - x, LEAST(at + TILE_WIDTH, end) - k);
                        T *to = o + (y + row) * s.ow + x;
                        for (int64_t m = 0; m < n; m++) /* none between two rows */
                            to[m] = sums[r * TILE_WIDTH + k - at + m] + bias;
                        k = (row + 1) * s.width;
                    }
                }
            }
    }
    free(lines);
}

/* sums[ROWS_AT_ONCE][3] += products of `n` elements of rows of gradients, with a line at three places; n is a multiple
   of LANES. */
static void V(tile_of_weights)(T *sums, int64_t step, const T *g, int64_t apart, int64_t n, const T *x, const int64_t *places,
                               int64_t count)
{
    const T *one = x + places[0], *two = x + places[count > 1 ? 1 : 0], *three = x + places[count > 2 ? 2 : 0];
#define START(r) V(vector) a##r = {0}, b##r = {0}, c##r = {0};
    EVERY_ROW(START)
#undef START
    for (int64_t k = 0; k < n; k += LANES) {
        V(vector) p = *(const V(vector_anywhere) *)(one + k), q = *(const V(vector_anywhere) *)(two + k);
        V(vector) r = *(const V(vector_anywhere) *)(three + k);
#define ADD(m)                                                                                                                    \
    {                                                                                                                             \
        V(vector) own = *(const V(vector_anywhere) *)(g + m * apart + k);                                                             \
        a##m += p * own, b##m += q * own, c##m += r * own;                                                                        \
    }
        EVERY_ROW(ADD)
#undef ADD
    }
    T found[ROWS_AT_ONCE * 3][VECTOR_BYTES / sizeof(T)];
#define KEEP(m)                                                                                                                   \
    memcpy(found[3 * m], &a##m, VECTOR_BYTES);                                                                                    \
    memcpy(found[3 * m + 1], &b##m, VECTOR_BYTES);                                                                                \
    memcpy(found[3 * m + 2], &c##m, VECTOR_BYTES);
    EVERY_ROW(KEEP)
#undef KEEP
    for (int64_t width = LANES / 2; width; width /= 2)
        for (int64_t m = 0; m < ROWS_AT_ONCE * 3; m++)
            for (int64_t k = 0; k < width; k++)
                found[m][k] += found[m][k + width];
    for (int64_t m = 0; m < ROWS_AT_ONCE; m++)
        for (int64_t k = 0; k < count; k++)
            sums[m * step + k] += found[3 * m + k][0];
}

/* i: as above, but for the bias. a: [parts, groups, output channels of a group rounded up to BLOCK, depth] of sums, [parts] of
   bytes: there was no memory; gradient of the output, input. */
static void V(convolve_weights)(const job *j, int64_t part)
{
    V(shape_of_convolution) s;
    V(read_convolution)(&s, j->i + 1);
    int64_t images = j->a[3].size / (s.groups * s.inputs * s.h * s.w), outputs = (s.outputs + BLOCK - 1) / BLOCK * BLOCK, first, last;
    int64_t most = s.rows + (s.kh - 1) * s.dh / s.sh, plane = V(place_taps)(&s, most), size = s.inputs * plane + LANES;
    int64_t length = (s.rows * s.width + LANES - 1) / LANES * LANES, depth = s.inputs * s.taps;
    char *room = malloc((size_t)(size + outputs * length) * sizeof(T) + 64);
    T *g = (T *)(room + (64 - (uintptr_t)room % 64)), *lines = g + outputs * length;
    T *sums = (T *)j->a[0].p + part * s.groups * outputs * depth;
    if (!room) {
        j->a[1].p[part] = 1;
        return;
    }
    memset(sums, 0, (size_t)(s.groups * outputs * depth) * sizeof(T));
    for (int64_t k = size - LANES; k < size; k++)
        lines[k] = 0;
    for (int64_t k = 0; k < outputs * length; k++)
        g[k] = 0;
    share(images * s.groups * s.bands, 1, j, part, &first, &last);
    for (int64_t task = first; task < last; task++) {
        int64_t y = task % s.bands * s.rows, rows = LEAST(s.rows, s.oh - y), group = task / s.bands % s.groups;
        int64_t image = task / s.bands / s.groups;
        V(fill_lines)(lines, &s, (const T *)j->a[3].p + (image * s.groups + group) * s.inputs * s.h * s.w, y, most);
        for (int64_t channel = 0; channel < s.outputs; channel++) {
            const T *from = (const T *)j->a[2].p + (((image * s.groups + group) * s.outputs + channel) * s.oh + y) * s.ow;
            T *to = g + channel * length;
            for (int64_t row = 0; row < rows; row++)
                memcpy(to + row * s.width, from + row * s.ow, (size_t)s.ow * sizeof(T));
            for (int64_t row = rows; row < s.rows; row++)
                memset(to + row * s.width, 0, (size_t)s.ow * sizeof(T));
        }
        for (int64_t from = 0; from < length; from += STRETCH)
            for (int64_t channel = 0; channel < outputs; channel += ROWS_AT_ONCE)
                for (int64_t input = 0; input < s.inputs; input++)
                    for (int64_t tap = 0; tap < s.taps; tap += 3)
                        V(tile_of_weights)(sums + (group * outputs + channel) * depth + input * s.taps + tap, depth,
                                           g + channel * length + from, length, LEAST(STRETCH, length - from),
                                           lines + input * plane + from, s.places + tap, LEAST(3, s.taps - tap));
    }
    free(room);
}

#undef BLOCK
#undef VECTORS_OF_TILE
#undef LANES
#undef TILE_WIDTH
#undef MOST_TAPS
#undef STRETCH
#undef ROWS_AT_ONCE
#undef EVERY_ROW
