// Numbers of few bits, as a matrix unit takes them: the element types of scaled formats.
#pragma once

#include <cstdint>
#include <string_view>

namespace msprobe {

/// What becomes of a number beyond the largest one where a cast does not saturate.
enum class Beyond : uint8_t { kNan, kInfinite, kLargest };

struct NumberFormat {
  std::string_view name;
  int digits;       // of the significand with its leading bit
  int least_power;  // 2^least_power is the smallest normal number; below it numbers are equally far apart
  float largest;
  Beyond beyond;

  /// What rounding to nearest changes at most, relative to a normal number.
  float unit() const { return __builtin_bit_cast(float, static_cast<uint32_t>(127 - digits) << 23); }
};

/// "e4m3", "e5m2", "e3m2", "e2m3", "e2m1", "int8", "bf16"; null for another name.
const NumberFormat* FindNumberFormat(std::string_view name);

/// How numbers are cast.
struct CastRules {
  bool saturate = true;
  bool stochastic = false;  // up with the probability of what is cut off
  uint64_t seed = 0;        // of the generator, Philox4x32-10
  uint64_t first = 0;       // the counter of the first element: element i draws lane i % 4 of block i / 4
};

struct CastCounts {
  uint64_t saturated = 0;   // beyond the largest number, infinities included
  uint64_t to_zero = 0;     // not zero before, zero after
  uint64_t not_finite = 0;  // NaN and infinities that came in
};

/// The nearest numbers of the format, ties to even, of `in[i] * scale`; `counts` grows.
void CastNumbers(const NumberFormat& format, const CastRules& rules, const float* in, int64_t n, float scale,
                 float* out, CastCounts* counts);

}  // namespace msprobe
