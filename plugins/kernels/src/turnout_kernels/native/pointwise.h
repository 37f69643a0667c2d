/* Element-wise operators: once over memory, whatever the dtypes and strides are.

   i: dtype of the computation, operator, dtypes of the output and of the inputs. f: the operator's numbers.
   a: the output, then the inputs, all of one shape; a stride of 0 repeats an element.
   Elements that are not in memory as the operator wants them pass through buffers of CHUNK elements, which stay in the cache. */

#ifndef TURNOUT_POINTWISE_H
#define TURNOUT_POINTWISE_H
#define CHUNK 512
#define TILE 64
/* name, result. a, b and c are the inputs; p is the operator's numbers. Here are those that only this distribution compiles;
   EVERY_EXPRESSION and EVERY_QUESTION are made of the table of turnout-arrays by the build. */
#define EVERY_OWN(X)                                                                                                              \
    X(copy, a)                                                                                                                    \
    X(cube, a *a *a)                                                                                                              \
    X(hardswish_backward, b <= -3 ? 0 : b < 3 ? a * (b / 3 + (T)0.5) : a)                                                         \
    X(leaky_relu_backward, b > 0 ? a : a * p[0])                                                                                  \
    X(hardtanh_backward, b > p[0] && b < p[1] ? a : 0)                                                                            \
    X(distance, MATHS(fabs)(a - b))                                                                                               \
    X(bent, V(bent)(MATHS(fabs)(a - b), p[0]) * p[1])                                                                             \
    X(scaled, a *b *p[0])                                                                                                         \
    X(add_number, a + p[0])                                                                                                       \
    X(sub_number, a - p[0])                                                                                                       \
    X(mul_number, a *p[0])                                                                                                        \
    X(div_number, a / p[0])                                                                                                       \
    X(where, a != 0 ? b : c)
#include "expressions.h"
/* Questions are the last. */
#define EVERY_POINTWISE(X) EVERY_OWN(X) EVERY_EXPRESSION(X) EVERY_QUESTION(X)
enum {
#define NAME(name, result) POINTWISE_##name,
    EVERY_POINTWISE(NAME)
#undef NAME
        POINTWISE_COUNT,
#define ONE(name, result) +1
    QUESTION_COUNT = EVERY_QUESTION(ONE),
#undef ONE
    FIRST_QUESTION = POINTWISE_COUNT - QUESTION_COUNT
};
#endif

#if IS_FLOAT
#define MATHS(name) name##f
#else
#define MATHS(name) name
#endif

/* e^x - 1: by tanh where the difference would cancel; within 4 ulp */
static inline T V(expo_less_one)(T x)
{
    T half = x * (T)0.5, t = V(tanh)(half), far = V(expo)(x) - 1;
    return x > -1 && x < 1 ? 2 * t / (1 - t) : far;
}

/* ln(1 + x), within 3 ulp: what 1 + x loses is given back by the factor (Kahan) */
static inline T V(loga_plus_one)(T x)
{
    T u = 1 + x, rest = u - 1;
    T made = rest == 0 ? x : V(loga)(u) * (x / rest);
    return x < (T)INFINITY ? made : x;
}

/* s^2 / 2 up to a limit, then linear */
static inline T V(bent)(T size, T limit)
{
    T near = size > limit ? limit : size;
    return near * (size - (T)0.5 * near);
}

static inline T V(hypotenuse)(T a, T b)
{
    double x = a, y = b;
    T made = (T)sqrt(x * x + y * y);
    return MATHS(fabs)(a) == (T)INFINITY || MATHS(fabs)(b) == (T)INFINITY ? (T)INFINITY : made;
}

/* (1 + erf t) / 2, within 2^-24, and within 1e-3 of itself where it is tiny; 0 below -6. */
static inline T V(normal_share)(T t)
{
#if IS_FLOAT
    T s = fabsf(t), size = s > 6.f ? 6.f : s, q = -6.14890837e-07f;
    q = q * size + 1.3860832e-05f;
    q = q * size + -0.000114039125f;
    q = q * size + 0.00028480374f;
    q = q * size + 0.0019299488f;
    q = q * size + -0.0209390875f;
    q = q * size + 0.103595212f;
    q = q * size + 0.636441648f;
    q = q * size + 1.12839329f;
    q = q * size + -1.73446395e-07f;
    T rest = s > 6.f ? 0.f : 0.5f * V(expo_of_negative)(-q);
    return t > 0 ? 1.f - rest : rest;
#else
    return 0.5 * (1 + erf(t));
#endif
}

EVERY_HELPER

#define LOOP_OVER(function, type, from, to, result)                                                                               \
    static void V(function)(type *o, const type *x, const type *y, const type *z, int64_t n, const T *p)                          \
    {                                                                                                                             \
        (void)y, (void)z, (void)p;                                                                                                \
        T p0 = p[0], p1 = p[1], p2 = p[2];                                                                                        \
        const T numbers[3] = {p0, p1, p2};                                                                                        \
        (void)numbers;                                                                                                            \
        _Pragma("GCC ivdep") for (int64_t k = 0; k < n; k++)                                                                      \
        {                                                                                                                         \
            T a = from(x[k]), b = from(y[k]), c = from(z[k]);                                                                     \
            (void)b, (void)c;                                                                                                     \
            const T *p = numbers;                                                                                                 \
            (void)p;                                                                                                              \
            o[k] = to((T)(result));                                                                                               \
        }                                                                                                                         \
    }
#define LOOP(name, result) LOOP_OVER(loop_##name, T, , , result)
EVERY_POINTWISE(LOOP)
#undef LOOP

static void (*const V(LOOPS)[])(T *, const T *, const T *, const T *, int64_t, const T *) = {
#define ADDRESS(name, result) V(loop_##name),
    EVERY_POINTWISE(ADDRESS)
#undef ADDRESS
};

#if IS_FLOAT
/* Where all arrays are bfloat16: a third less time than by way of buffers */
#define LOOP(name, result) LOOP_OVER(bfloats_##name, any_half, K(from_bfloat), K(to_bfloat), result)
EVERY_POINTWISE(LOOP)
#undef LOOP

static void (*const V(LOOPS_OF_BFLOATS)[])(any_half *, const any_half *, const any_half *, const any_half *, int64_t, const T *) = {
#define ADDRESS(name, result) V(bfloats_##name),
    EVERY_POINTWISE(ADDRESS)
#undef ADDRESS
};
#endif
#undef LOOP_OVER

/* Questions without a buffer for the answers */
#define ASK(name, result)                                                                                                         \
    static void V(ask_##name)(uint8_t *o, const T *x, const T *y, int64_t n)                                                      \
    {                                                                                                                             \
        _Pragma("GCC ivdep") for (int64_t k = 0; k < n; k++)                                                                      \
        {                                                                                                                         \
            T a = x[k], b = y[k];                                                                                                 \
            o[k] = result;                                                                                                        \
        }                                                                                                                         \
    }
EVERY_QUESTION(ASK)
#undef ASK

static void (*const V(QUESTIONS)[])(uint8_t *, const T *, const T *, int64_t) = {
#define ADDRESS(name, result) V(ask_##name),
    EVERY_QUESTION(ADDRESS)
#undef ADDRESS
};

/* `n` elements with a stride, as T */
static void V(load)(T *to, const char *from, int64_t stride, int64_t n, int dtype)
{
#define LOAD(type, value)                                                                                                         \
    if (stride == (int64_t)sizeof(type)) {                                                                                        \
        const type *e = (const type *)from;                                                                                       \
        for (int64_t k = 0; k < n; k++) {                                                                                         \
            type v = e[k];                                                                                                        \
            to[k] = (T)(value);                                                                                                   \
        }                                                                                                                         \
    } else if (stride == 2 * (int64_t)sizeof(type)) { /* a distance that compilers vectorise */                                   \
        const type *e = (const type *)from;                                                                                       \
        for (int64_t k = 0; k < n - 1; k++) {                                                                                     \
            type v = e[2 * k];                                                                                                    \
            to[k] = (T)(value);                                                                                                   \
        }                                                                                                                         \
        type v = e[2 * n - 2];                                                                                                    \
        to[n - 1] = (T)(value);                                                                                                   \
    } else                                                                                                                        \
        for (int64_t k = 0; k < n; k++) {                                                                                         \
            type v = *(const type *)(from + k * stride);                                                                          \
            to[k] = (T)(value);                                                                                                   \
        }
#if IS_FLOAT
    if (dtype == F16 && stride == 2) {
        K(load_halves)(to, (const any_half *)from, n);
        return;
    }
#endif
    switch (dtype) {
    case F32: LOAD(any_float, v) break;
    case F64: LOAD(any_double, v) break;
    case F16: LOAD(any_half, K(from_half)(v)) break;
    case BF16: LOAD(any_half, K(from_bfloat)(v)) break;
    case I64: LOAD(any_word, v) break;
    default: LOAD(uint8_t, v != 0) break;
    }
#undef LOAD
}

static void V(store)(char *to, int64_t stride, const T *from, int64_t n, int dtype)
{
#define STORE(type, value)                                                                                                        \
    if (stride == (int64_t)sizeof(type)) {                                                                                        \
        type *e = (type *)to;                                                                                                     \
        for (int64_t k = 0; k < n; k++) {                                                                                         \
            T v = from[k];                                                                                                        \
            e[k] = (type)(value);                                                                                                 \
        }                                                                                                                         \
    } else                                                                                                                        \
        for (int64_t k = 0; k < n; k++) {                                                                                         \
            T v = from[k];                                                                                                        \
            *(type *)(to + k * stride) = (type)(value);                                                                           \
        }
#if IS_FLOAT
    if (dtype == F16 && stride == 2) {
        K(store_halves)((any_half *)to, from, n);
        return;
    }
#endif
    switch (dtype) {
    case F32: STORE(any_float, v) break;
    case F64: STORE(any_double, v) break;
    case F16: STORE(any_half, K(to_half)((float)v)) break;
    case BF16: STORE(any_half, K(to_bfloat)((float)v)) break;
    default: STORE(uint8_t, v != 0) break;
    }
#undef STORE
}

/* The dims of a job in the order of the output's memory, neighbours that are one run in every array as one. Returns how many. */
static int V(ordered)(const job *j, int arrays, int64_t *shape, int64_t stride[][MAX_DIMS])
{
    int order[MAX_DIMS], count = 0, nd = 0;
    for (int d = 0; d < j->a[0].ndim; d++) {
        if (j->a[0].shape[d] == 1)
            continue;
        int at = count++;
        for (; at && llabs(j->a[0].stride[order[at - 1]]) < llabs(j->a[0].stride[d]); at--)
            order[at] = order[at - 1];
        order[at] = d;
    }
    for (int m = 0; m < count; m++) {
        int d = order[m], joins = nd > 0;
        int64_t length = j->a[0].shape[d];
        for (int k = 0; k < arrays && joins; k++)
            joins = stride[k][nd - 1] == j->a[k].stride[d] * length;
        if (joins)
            shape[nd - 1] *= length;
        else
            shape[nd++] = length;
        for (int k = 0; k < arrays; k++)
            stride[k][nd - 1] = j->a[k].stride[d];
    }
    return nd;
}

/* Where an input lies across the last dim, and along another one, that one is put beside the last. Whether there is such a dim. */
static int V(crossed)(int arrays, int nd, int64_t *shape, int64_t stride[][MAX_DIMS])
{
    for (int k = 1; k < arrays && nd > 1; k++) {
        if (llabs(stride[k][nd - 1]) < 64)
            continue;
        int along = nd - 1;
        for (int d = nd - 2; d >= 0; d--)
            if (stride[k][d] && llabs(stride[k][d]) < llabs(stride[k][along]))
                along = d;
        if (along == nd - 1)
            continue;
        for (int d = along; d < nd - 2; d++) {
            int64_t length = shape[d];
            shape[d] = shape[d + 1], shape[d + 1] = length;
            for (int m = 0; m < arrays; m++) {
                int64_t step = stride[m][d];
                stride[m][d] = stride[m][d + 1], stride[m][d + 1] = step;
            }
        }
        return 1;
    }
    return 0;
}

/* Arrays that lie across each other are done in tiles: TILE elements of the last dim, for all of the dim before it, so that the
   lines of memory that are read for one row are still in the cache for the next ones. */
static void V(map)(const job *j, int64_t part)
{
    static const int64_t sizes[] = {4, 8, 2, 2, 1, 8};
    const int own = IS_FLOAT ? F32 : F64, inputs = j->count - 1;
    int64_t shape[MAX_DIMS], stride[4][MAX_DIMS], first, last;
    int nd = V(ordered)(j, inputs + 1, shape, stride);
    if (!nd) {
        shape[nd++] = 1;
        for (int k = 0; k <= inputs; k++)
            stride[k][0] = 0;
        stride[0][0] = sizes[j->i[2]];
    }
    const T numbers[3] = {(T)j->f[0], (T)j->f[1], (T)j->f[2]};
    _Alignas(64) T buffers[4][CHUNK];
    const char *filled[4] = {0};
    int64_t length = shape[nd - 1], filled_to[4] = {0};
    int tiled = V(crossed)(inputs + 1, nd, shape, stride);
    int64_t tile = tiled ? LEAST(TILE, length) : length, beside = tiled ? shape[nd - 2] : 1, plane = beside * length;
    int direct[4], all = 1, bfloats = IS_FLOAT;
    for (int k = 0; k <= inputs; k++) {
        direct[k] = j->i[2 + k] == own && stride[k][nd - 1] == (int64_t)sizeof(T) && (uintptr_t)j->a[k].p % sizeof(T) == 0;
        all = all && direct[k];
        bfloats = bfloats && j->i[2 + k] == BF16 && stride[k][nd - 1] == 2;
    }
    /* A copy that only the input's dtype or layout keeps from being direct needs no buffer. */
    int asked = j->i[1] >= FIRST_QUESTION && j->i[2] == BYTE && stride[0][nd - 1] == 1;
    int converted = j->i[1] == POINTWISE_copy && direct[0] && !all && stride[1][nd - 1];
    share(j->a[0].size, 64, j, part, &first, &last);
    for (int64_t at = first; at < last;) {
        int64_t rest = at / plane, place = at % plane, start = place / (tile * beside) * tile;
        int64_t width = LEAST(tile, length - start), inside = place - start * beside;
        int64_t inner = start + inside % width, run = LEAST(width - inside % width, last - at);
        char *p[4] = {0};
        for (int k = 0; k <= inputs; k++)
            p[k] = j->a[k].p + inner * stride[k][nd - 1];
        int d = nd - 2;
        if (tiled) {
            for (int k = 0; k <= inputs; k++)
                p[k] += inside / width * stride[k][d];
            d--;
        }
        for (; d >= 0; d--) {
            for (int k = 0; k <= inputs; k++)
                p[k] += rest % shape[d] * stride[k][d];
            rest /= shape[d];
        }
        const T *in[4] = {0};
        int64_t rows = tiled && run == width ? LEAST(LEAST(beside - inside / width, CHUNK / width), (last - at) / width) : 1;
        if (rows > 1) {
            for (int k = 1; k < 4; k++) {
                in[k] = buffers[k <= inputs ? k : 1];
                for (int64_t r = 0; r < rows && k <= inputs; r++)
                    V(load)(buffers[k] + r * width, p[k] + r * stride[k][nd - 2], stride[k][nd - 1], width, (int)j->i[2 + k]);
            }
            V(LOOPS)[j->i[1]](buffers[0], in[1], in[2], in[3], rows * width, numbers);
            for (int64_t r = 0; r < rows; r++)
                V(store)(p[0] + r * stride[0][nd - 2], stride[0][nd - 1], buffers[0] + r * width, width, (int)j->i[2]);
            memset(filled, 0, sizeof filled);
            at += rows * width;
            continue;
        }
        at += run;
#if IS_FLOAT
        if (bfloats) {
            for (int k = inputs + 1; k < 4; k++)
                p[k] = p[1];
            V(LOOPS_OF_BFLOATS)[j->i[1]]((any_half *)p[0], (any_half *)p[1], (any_half *)p[2], (any_half *)p[3], run, numbers);
            continue;
        }
#endif
        if (converted) {
            V(load)((T *)p[0], p[1], stride[1][nd - 1], run, (int)j->i[3]);
            continue;
        }
        for (int64_t n; run > 0; run -= n) {
            n = all ? run : LEAST(run, CHUNK);
            for (int k = 1; k <= inputs; k++) {
                if (direct[k]) {
                    in[k] = (const T *)p[k];
                    continue;
                }
                in[k] = buffers[k];
                if (stride[k][nd - 1]) {
                    V(load)(buffers[k], p[k], stride[k][nd - 1], n, (int)j->i[2 + k]);
                } else if (filled[k] != p[k] || filled_to[k] < n) {
                    V(load)(buffers[k], p[k], 0, 1, (int)j->i[2 + k]);
                    for (int64_t m = 1; m < n; m++)
                        buffers[k][m] = buffers[k][0];
                    filled[k] = p[k], filled_to[k] = n;
                }
            }
            for (int k = inputs + 1; k < 4; k++)
                in[k] = in[1];
            T *out = direct[0] ? (T *)p[0] : buffers[0];
            if (asked)
                V(QUESTIONS)[j->i[1] - FIRST_QUESTION]((uint8_t *)p[0], in[1], in[2], n);
            else if (!direct[0] && j->i[1] == POINTWISE_copy)
                V(store)(p[0], stride[0][nd - 1], in[1], n, (int)j->i[2]);
            else {
                V(LOOPS)[j->i[1]](out, in[1], in[2], in[3], n, numbers);
                if (!direct[0])
                    V(store)(p[0], stride[0][nd - 1], out, n, (int)j->i[2]);
            }
            for (int k = 0; k <= inputs; k++)
                p[k] += n * stride[k][nd - 1];
        }
    }
}
#undef MATHS
