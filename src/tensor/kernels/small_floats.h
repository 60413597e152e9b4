// Values of the formats below float32. No library is needed, so that kernels of devices read the same text.
#pragma once

#include <cstdint>

#include "tensor/kernels/dtype.h"

namespace msprobe::stats {

inline float BFloatToFloat(uint16_t bits) { return __builtin_bit_cast(float, static_cast<uint32_t>(bits) << 16); }

inline float HalfToFloat(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t exponent = (bits >> 10) & 31, mantissa = bits & 1023;
  if (exponent == 31) return __builtin_bit_cast(float, sign | 0x7F800000u | (mantissa << 13));
  if (exponent == 0) {
    const float v = static_cast<float>(mantissa) * 0x1p-24f;
    return sign ? -v : v;
  }
  return __builtin_bit_cast(float, sign | ((exponent + 112) << 23) | (mantissa << 13));
}

inline float Float8ToFloat(DType t, uint8_t bits) {
  const float nan = __builtin_nanf(""), infinity = __builtin_huge_valf();
  if (t == DType::kFloat8E8M0FNU) {
    constexpr uint32_t kLeast = uint32_t{1} << 22;  // 2^-127 has no bit of the exponent
    return bits == 0xFF ? nan : __builtin_bit_cast(float, bits == 0 ? kLeast : static_cast<uint32_t>(bits) << 23);
  }
  const bool wide = t == DType::kFloat8E5M2 || t == DType::kFloat8E5M2FNUZ;
  const bool unsigned_zero = t == DType::kFloat8E4M3FNUZ || t == DType::kFloat8E5M2FNUZ;
  const int mantissa_bits = wide ? 2 : 3;
  const int bias = (wide ? 15 : 7) + (unsigned_zero ? 1 : 0);
  const int exponent = (bits & 0x7F) >> mantissa_bits, mantissa = bits & ((1 << mantissa_bits) - 1);
  const float sign = bits & 0x80 ? -1.0f : 1.0f;
  if (unsigned_zero && bits == 0x80) return nan;
  if (t == DType::kFloat8E4M3FN && (bits & 0x7F) == 0x7F) return nan;
  if (t == DType::kFloat8E5M2 && exponent == 31) return mantissa ? nan : sign * infinity;
  const int digits = exponent == 0 ? mantissa : mantissa + (1 << mantissa_bits);
  const int power = (exponent == 0 ? 1 : exponent) - bias - mantissa_bits;
  return sign * static_cast<float>(digits) * __builtin_bit_cast(float, static_cast<uint32_t>(127 + power) << 23);
}

}  // namespace msprobe::stats
