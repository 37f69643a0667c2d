// bfloat16 as CUDA's header has it, computed with integers.

#pragma once
#include "emulation.h"

struct __nv_bfloat16 {
    std::uint16_t bits;
};

inline float __bfloat162float(__nv_bfloat16 value) { return bits_as<float>(std::uint32_t(value.bits) << 16); }

inline __nv_bfloat16 __float2bfloat16(float value) {
    std::uint32_t word = bits_as<std::uint32_t>(value);
    if (std::isnan(value)) return {std::uint16_t(word >> 16 | 0x40)};
    return {std::uint16_t((word + 0x7fff + (word >> 16 & 1)) >> 16)};
}
