/* Elementary functions without branches, for loops that compilers vectorise. The polynomials are minimax fits of this project;
   errors are in units in the last place, over all float32, and tested (tests/plugins/test_function_accuracy.py). */

#if IS_FLOAT
#define C(x) x##f
#define BIG 12582912.f /* 1.5 * 2^23: added and taken away, it rounds to an integer */
static inline T V(power_of_two)(int32_t n) { return as_float((uint32_t)(n + 127) << 23); }
#else
#define C(x) x
#define BIG 6755399441055744.0
static inline T V(power_of_two)(int32_t n) { return as_double((uint64_t)(int64_t)(n + 1023) << 52); }
#endif

/* e^x, within 1 ulp. ln 2 is taken away in two parts; 2^n is multiplied in two parts, for results near both ends. */
static inline T V(expo)(T x)
{
#if IS_FLOAT
    x = x > 89.f ? 89.f : x < -104.f ? -104.f : x;
#else
    x = x > 710. ? 710. : x < -746. ? -746. : x;
#endif
    T n = x * C(1.4426950408889634) + BIG - BIG;
#if IS_FLOAT
    T r = x - n * 0.693359375f - n * -2.12194440e-4f;
    T p = 0.00138146023f;
    p = p * r + 0.00836871564f;
    p = p * r + 0.041668389f;
    p = p * r + 0.166665211f;
    p = p * r + 0.49999994f;
#else
    T r = x - n * 6.93147180369123816490e-01 - n * 1.90821492927058770002e-10;
    T p = 1.0343413331840086e-08;
    p = p * r + 2.5209106802037695e-08;
    p = p * r + 2.7209075808601645e-07;
    p = p * r + 2.755661052474346e-06;
    p = p * r + 2.4802151151457477e-05;
    p = p * r + 0.00019841271103058591;
    p = p * r + 0.001388888845658319;
    p = p * r + 0.00833333333240821;
    p = p * r + 0.041666666668202575;
    p = p * r + 0.1666666666666901;
    p = p * r + 0.49999999999998057;
#endif
    p = p * (r * r) + r;
    int32_t whole = (int32_t)n, half = whole >> 1;
    T low = V(power_of_two)(half), high = V(power_of_two)(whole - half);
    T scaled = (p * low + low) * high;
    return x == x ? scaled : x;
}

#if IS_FLOAT
/* e^x for x between -87 and 0, in fewer steps */
static inline T V(expo_of_negative)(T x)
{
    T n = x * 1.4426950408889634f + BIG - BIG, r = x - n * 0.693359375f - n * -2.12194440e-4f, p = 0.00138146023f;
    p = p * r + 0.00836871564f;
    p = p * r + 0.041668389f;
    p = p * r + 0.166665211f;
    p = p * r + 0.49999994f;
    T low = V(power_of_two)((int32_t)n);
    return (p * (r * r) + r) * low + low;
}

/* ln x for any x, within 1 ulp: x = 2^e (1 + f) with f between sqrt(1/2) - 1 and sqrt(2) - 1. */
static inline T V(loga)(T x)
{
    int small = x < 1.17549435e-38f;
    T y = small ? x * 8388608.f : x;
    int32_t e = (int32_t)(as_bits(y) - 0x3f3504f3u) >> 23;
    T f = as_float(as_bits(y) - ((uint32_t)e << 23)) - 1.f, n = (T)e - (small ? 23.f : 0.f);
    T p = 0.0674663857f;
    p = p * f + -0.116756514f;
    p = p * f + 0.118881628f;
    p = p * f + -0.124055892f;
    p = p * f + 0.142195523f;
    p = p * f + -0.166679963f;
    p = p * f + 0.200021192f;
    p = p * f + -0.250000089f;
    p = p * f + 0.333333135f;
    T s = f * f, rest = p * (s * f) - 0.5f * s + n * -2.12194440e-4f;
    T made = f + rest + n * 0.693359375f;
    made = x == 0 ? -INFINITY : made;
    made = x < 0 ? NAN : made;
    return x == x && x < INFINITY ? made : x + x;
}

/* tanh x, within 2 ulp, with the sign of x at zero too */
static inline T V(tanh)(T x)
{
    T s = x * x, p = -0.00569738401f;
    p = p * s + 0.0206325464f;
    p = p * s + -0.0537377968f;
    p = p * s + 0.133314207f;
    p = p * s + -0.333332807f;
    T near = p * (s * x) + x, size = fabsf(x);
    T far = 1.f - 2.f / (V(expo)(2.f * size) + 1.f);
    return copysignf(size < 0.625f ? near : far, x);
}

/* erf x, within 2 ulp: x + x P(x^2), or 1 - exp(-P(x)) */
static inline T V(erf)(T x)
{
    T s = x * x, p = 8.31681755e-05f;
    p = p * s + -0.000813002465f;
    p = p * s + 0.00519990781f;
    p = p * s + -0.0268589426f;
    p = p * s + 0.112836875f;
    p = p * s + -0.376126319f;
    p = p * s + 0.128379166f;
    T near = p * x + x, size = fabsf(x), t = size > 4.f ? 4.f : size, q = 2.10949693e-05f;
    q = q * t + -0.000434461748f;
    q = q * t + 0.004171059f;
    q = q * t + -0.0251194183f;
    q = q * t + 0.108280078f;
    q = q * t + 0.633346915f;
    q = q * t + 1.12951493f;
    q = q * t + -0.000174683286f;
    T far = copysignf(1.f - V(expo_of_negative)(-q), x);
    return size < 0.93f ? near : size == size ? far : x;
}

/* cos(2 pi v) for v in [0, 1), within 2 ulp of the largest value: quarter turns, and a polynomial for what is left of one */
static inline T V(cosine_of_turn)(T v)
{
    T quarters = v * 4.f, n = quarters + BIG - BIG, z = quarters - n, s = z * z;
    T cosine = 0.000903363223f, sine = 0.000158195107f;
    cosine = cosine * s + -0.0208599363f;
    cosine = cosine * s + 0.253669173f;
    cosine = cosine * s + -1.23370051f;
    cosine = cosine * s + 1.f;
    sine = sine * s + -0.00468126079f;
    sine = sine * s + 0.0796925798f;
    sine = sine * s + -0.645964086f;
    sine = (sine * s + 1.57079637f) * z;
    int32_t k = (int32_t)n;
    T made = k & 1 ? sine : cosine;
    return (k + 1) & 2 ? -made : made;
}
#else
static inline T V(loga)(T x) { return log(x); }
static inline T V(tanh)(T x) { return tanh(x); }
static inline T V(erf)(T x) { return erf(x); }
static inline T V(cosine_of_turn)(T v) { return cos(6.283185307179586 * v); }
#endif

#undef C
#undef BIG
