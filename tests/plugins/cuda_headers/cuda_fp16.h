// float16 as CUDA's header has it, computed with integers.

#pragma once
#include "emulation.h"

struct __half {
    std::uint16_t bits;
};

inline float __half2float(__half value) {
    std::uint32_t sign = std::uint32_t(value.bits & 0x8000) << 16, exponent = value.bits >> 10 & 31, digits = value.bits & 0x3ff;
    float size = exponent == 31 ? (digits ? NAN : INFINITY)
                 : exponent     ? std::ldexp(float(digits | 0x400), int(exponent) - 25)
                                : std::ldexp(float(digits), -24);
    return sign ? -size : size;
}

inline __half __float2half(float value) {
    std::uint32_t word = bits_as<std::uint32_t>(value);
    std::uint16_t sign = word >> 16 & 0x8000;
    if (std::isnan(value)) return {std::uint16_t(sign | 0x7e00)};
    float size = std::fabs(value);
    if (size >= 65520.0f) return {std::uint16_t(sign | 0x7c00)};
    // In units of the last digit; nearbyint rounds to the nearest, half to even.
    int exponent = size < 6.103515625e-05f ? -14 : std::ilogb(size);
    std::uint32_t units = std::uint32_t(std::nearbyint(std::ldexp(size, 10 - exponent)));
    return {std::uint16_t(sign | (std::uint32_t(exponent + 14) * 1024 + units))};
}
