/* Two-byte floats from and to float32, rounded to nearest, ties to even. Integer arithmetic only, so every compiler vectorises it. */

static inline float K(from_half)(uint16_t h)
{
    /* The exponent is rescaled by a product, which also gives subnormals their value. */
    uint32_t rest = (uint32_t)(h & 0x7fff) << 13;
    uint32_t bits = as_bits(as_float(rest) * as_float(0x77800000)); /* 2^112 */
    bits |= (h & 0x7c00) == 0x7c00 ? 0x7f800000u : 0;
    return as_float(bits | (uint32_t)(h & 0x8000) << 16);
}

static inline uint16_t K(to_half)(float f)
{
    uint32_t bits = as_bits(f), sign = bits >> 16 & 0x8000, u = bits & 0x7fffffff;
    uint32_t normal = (u - 0x37fff001u + (u >> 13 & 1)) >> 13; /* -112 in the exponent, and the rounding */
    uint32_t subnormal = as_bits(as_float(u) + 0.5f) - 0x3f000000u; /* 0.5 has its last bit where subnormals have theirs */
    uint32_t made = u < 0x38800000u ? subnormal : normal;
    made = u >= 0x47800000u ? 0x7c00u : made;
    made = u > 0x7f800000u ? 0x7e00u : made;
    return (uint16_t)(made | sign);
}

static inline float K(from_bfloat)(uint16_t b) { return as_float((uint32_t)b << 16); }

static inline uint16_t K(to_bfloat)(float f)
{
    uint32_t u = as_bits(f), made = (u + 0x7fffu + (u >> 16 & 1)) >> 16;
    return (uint16_t)((u & 0x7fffffff) > 0x7f800000u ? 0x7fc0u : made);
}

/* `n` of them; processors with AVX2 have instructions for eight at a time, which round alike. */
static void K(load_halves)(float *to, const any_half *from, int64_t n)
{
    int64_t k = 0;
#ifdef FAST_HALVES
    for (; k + 8 <= n; k += 8)
        _mm256_storeu_ps(to + k, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(from + k))));
#endif
    for (; k < n; k++)
        to[k] = K(from_half)(from[k]);
}

static void K(store_halves)(any_half *to, const float *from, int64_t n)
{
    int64_t k = 0;
#ifdef FAST_HALVES
    for (; k + 8 <= n; k += 8)
        _mm_storeu_si128((__m128i *)(to + k), _mm256_cvtps_ph(_mm256_loadu_ps(from + k), _MM_FROUND_TO_NEAREST_INT));
#endif
    for (; k < n; k++)
        to[k] = K(to_half)(from[k]);
}
