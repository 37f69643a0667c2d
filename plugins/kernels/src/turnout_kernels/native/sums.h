/* What a run of T in memory comes to: its sum, a sum of products, its largest element.

   Sums are those of 64 lanes (32 of double), which lie in as many registers as it takes: their order is the same on every
   processor, and so is the result, but for the rounding of a fused multiply-add. */
typedef T V(vector) __attribute__((vector_size(VECTOR_BYTES)));
typedef T V(vector_anywhere) __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(T)), may_alias));

#define LANES ((int64_t)(256 / sizeof(T)))
#define WIDTH ((int64_t)(VECTOR_BYTES / sizeof(T)))
#define REGISTERS (256 / VECTOR_BYTES)
#define AT(p, m) (*(const V(vector_anywhere) *)((p) + (m) * WIDTH))
#if VECTOR_BYTES >= 64
#define EVERY_REGISTER(X) X(0) X(1) X(2) X(3)
#elif VECTOR_BYTES >= 32
#define EVERY_REGISTER(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
#else
#define EVERY_REGISTER(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)
#endif
#define START(m) V(vector) s##m = {0};
#define KEEP(m) memcpy(lanes + m * WIDTH, &s##m, VECTOR_BYTES);

/* The sum of the lanes: four times 64 bytes, then by halves */
static inline T V(sum_of_lanes)(const T *lanes)
{
    T sums[LANES / 4];
    for (int64_t m = 0; m < LANES / 4; m++)
        sums[m] = (lanes[m] + lanes[m + LANES / 4]) + (lanes[m + LANES / 2] + lanes[m + 3 * LANES / 4]);
    for (int64_t w = LANES / 8; w; w /= 2)
        for (int64_t m = 0; m < w; m++)
            sums[m] += sums[m + w];
    return sums[0];
}

/* Sums of 2,048 elements, then in double: the error does not grow with the length. */
static double V(sum)(const T *x, int64_t n)
{
    double whole = 0;
    int64_t k = 0;
    T lanes[LANES];
    while (n - k >= LANES) {
        EVERY_REGISTER(START)
        for (int64_t end = LEAST(n, k + 2048); k + LANES <= end; k += LANES) {
#define ADD(m) s##m += AT(x + k, m);
            EVERY_REGISTER(ADD)
#undef ADD
        }
        EVERY_REGISTER(KEEP)
        whole += V(sum_of_lanes)(lanes);
    }
    for (; k < n; k++)
        whole += x[k];
    return whole;
}

/* The sum of (x - middle) * (y - middle_of_y) */
static double V(sum_of_products)(const T *x, T middle, const T *y, T middle_of_y, int64_t n)
{
    double whole = 0;
    int64_t k = 0;
    T lanes[LANES];
    V(vector) p, q;
    for (int64_t m = 0; m < WIDTH; m++)
        p[m] = middle, q[m] = middle_of_y;
    while (n - k >= LANES) {
        EVERY_REGISTER(START)
        for (int64_t end = LEAST(n, k + 2048); k + LANES <= end; k += LANES) {
#define ADD(m) s##m += (AT(x + k, m) - p) * (AT(y + k, m) - q);
            EVERY_REGISTER(ADD)
#undef ADD
        }
        EVERY_REGISTER(KEEP)
        whole += V(sum_of_lanes)(lanes);
    }
    for (; k < n; k++)
        whole += (x[k] - middle) * (y[k] - middle_of_y);
    return whole;
}
#undef LANES
#undef WIDTH
#undef REGISTERS
#undef AT
#undef EVERY_REGISTER
#undef START
#undef KEEP

#if IS_FLOAT
#define WORD int32_t
#define UNSIGNED uint32_t
#define BITS as_bits
#define NUMBER as_float
#define LEAST_WORD INT32_MIN
#else
#define WORD int64_t
#define UNSIGNED uint64_t
#define BITS as_bits64
#define NUMBER as_double
#define LEAST_WORD INT64_MIN
#endif

/* The largest of x, or the least where `sign` is -1; nan if there is one. As integers, numbers that are not negative are in their
   order, below their nans, and are followed, without a sign, by the others in the opposite order and their nans: with a sign the
   largest integer is the largest number, without one the least, unless all numbers are of the other kind. Compilers keep extremes
   of integers in registers, and not those of floats. */
static T V(outermost)(const T *x, int64_t n, T sign)
{
    const WORD infinity = (WORD)BITS((T)INFINITY);
    WORD most = LEAST_WORD;
    UNSIGNED far = 0;
#pragma GCC unroll 8
    for (int64_t k = 0; k < n; k++) {
        UNSIGNED bits = BITS(x[k]);
        most = (WORD)bits > most ? (WORD)bits : most;
        far = bits > far ? bits : far;
    }
    if (most > infinity || far > (UNSIGNED)(infinity | LEAST_WORD))
        return (T)NAN;
    if (sign > 0 && most >= 0)
        return NUMBER((UNSIGNED)most);
    if (sign < 0 && far >= (UNSIGNED)LEAST_WORD)
        return NUMBER(far);
    UNSIGNED least = far; /* the numbers are all negative, or none of them is */
    for (int64_t k = 0; k < n; k++) {
        UNSIGNED bits = BITS(x[k]);
        least = bits < least ? bits : least;
    }
    return NUMBER(least);
}

/* The same of absolute values. nan is above infinity. */
static T V(outermost_size)(const T *x, int64_t n, int largest)
{
    WORD most = 0, least = ~LEAST_WORD;
    for (int64_t k = 0; k < n; k++) {
        WORD bits = (WORD)BITS(x[k]) & ~LEAST_WORD;
        most = bits > most ? bits : most;
        least = bits < least ? bits : least;
    }
    T found = NUMBER(most);
    return largest || found != found ? found : NUMBER(least);
}
#undef WORD
#undef UNSIGNED
#undef BITS
#undef NUMBER
#undef LEAST_WORD
