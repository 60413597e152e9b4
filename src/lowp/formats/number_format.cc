#include "lowp/formats/number_format.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "tensor/kernels/finfo.h"

namespace msprobe {
namespace {

constexpr int32_t kExponent = 0x7F800000, kMagnitude = 0x7FFFFFFF;
constexpr int kFractionBits = 23, kBias = 127;

constexpr NumberFormat FormatOf(std::string_view name, DType type, Beyond beyond) {
  const FInfo& info = InfoOf(type);
  return {name, info.digits, info.least_power, static_cast<float>(info.largest), beyond};
}

// Those without a dtype are of the OCP Microscaling Formats specification 1.0. An integer is a number whose steps never
// grow. The scaled formats of integers leave -128 out, so that a number and its negative have the same distance.
constexpr std::array kFormats = {
    FormatOf("e4m3", DType::kFloat8E4M3FN, Beyond::kNan),  FormatOf("e5m2", DType::kFloat8E5M2, Beyond::kInfinite),
    NumberFormat{"e3m2", 3, -2, 28, Beyond::kLargest},     NumberFormat{"e2m3", 4, 0, 7.5F, Beyond::kLargest},
    NumberFormat{"e2m1", 2, 0, 6, Beyond::kLargest},       NumberFormat{"int8", 8, 7, 127, Beyond::kLargest},
    FormatOf("bf16", DType::kBFloat16, Beyond::kInfinite),
};

/// A block of four numbers of Philox4x32-10 (Salmon et al., SC 2011).
std::array<uint32_t, 4> Philox(uint64_t seed, uint64_t block) {
  std::array<uint32_t, 4> c{static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), 0, 0};
  uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * c[0], b = uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<uint32_t>(b >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(b),
         static_cast<uint32_t>(a >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(a)};
    k0 += 0x9E3779B9, k1 += 0xBB67AE85;
  }
  return c;
}

// Floats without their sign are in the order of their bits, so all below is done with integers, which compilers turn
// into vectors.
struct Grid {
  int32_t least;     // the exponent bits below which steps do not grow
  int32_t fraction;  // fraction bits of the format, as exponent bits
  int32_t largest, beyond;
};

Grid GridOf(const NumberFormat& format, bool saturate) {
  Grid grid{};
  grid.least = (format.least_power + kBias) << kFractionBits;
  grid.fraction = (format.digits - 1) << kFractionBits;
  grid.largest = std::bit_cast<int32_t>(format.largest);
  float beyond = format.largest;
  if (!saturate && format.beyond == Beyond::kNan) beyond = std::numeric_limits<float>::quiet_NaN();
  if (!saturate && format.beyond == Beyond::kInfinite) beyond = std::numeric_limits<float>::infinity();
  grid.beyond = std::bit_cast<int32_t>(beyond);
  return grid;
}

/// The exponent bits of a step of the grid at `magnitude`.
int32_t StepAt(const Grid& grid, int32_t magnitude) {
  const int32_t exponent = magnitude & kExponent;
  return (exponent > grid.least ? exponent : grid.least) - grid.fraction;
}

/// How many steps `magnitude` is long. Scaling by a power of two is exact.
float StepsOf(int32_t step, int32_t magnitude) {
  return std::bit_cast<float>(magnitude) * std::bit_cast<float>((2 * kBias << kFractionBits) - step);
}

/// All bits set, or none: a choice without a branch.
int32_t MaskOf(bool yes) { return -static_cast<int32_t>(yes); }

void CastNearest(const Grid& grid, const float* in, int64_t n, float scale, float* out, CastCounts* counts) {
  constexpr float kNoFraction = 0x1p23F;
  int32_t saturated = 0, to_zero = 0, not_finite = 0;
  for (int64_t i = 0; i < n; ++i) {
    const int32_t bits = std::bit_cast<int32_t>(in[i] * scale);
    const int32_t magnitude = bits & kMagnitude;
    const int32_t step = StepAt(grid, magnitude);
    const float nearest = ((StepsOf(step, magnitude) + kNoFraction) - kNoFraction) * std::bit_cast<float>(step);
    const int32_t special = MaskOf(magnitude >= kExponent);
    const int32_t number = (magnitude & special) | (std::bit_cast<int32_t>(nearest) & ~special);
    const int32_t over = MaskOf(number > grid.largest) & MaskOf(magnitude <= kExponent);
    const int32_t kept = (grid.beyond & over) | (number & ~over);
    saturated -= over;
    to_zero -= MaskOf(kept == 0) & MaskOf(magnitude != 0);
    not_finite -= special;
    out[i] = std::bit_cast<float>(kept | (bits & ~kMagnitude));
  }
  counts->saturated += static_cast<uint64_t>(saturated);
  counts->to_zero += static_cast<uint64_t>(to_zero);
  counts->not_finite += static_cast<uint64_t>(not_finite);
}

void CastAtRandom(const Grid& grid, const CastRules& rules, const float* in, int64_t n, float scale, float* out,
                  CastCounts* counts) {
  std::array<uint32_t, 4> draws{};
  for (int64_t i = 0; i < n; ++i) {
    const uint64_t at = rules.first + static_cast<uint64_t>(i);
    if (i == 0 || at % 4 == 0) draws = Philox(rules.seed, at / 4);
    const int32_t bits = std::bit_cast<int32_t>(in[i] * scale);
    const int32_t magnitude = bits & kMagnitude, step = StepAt(grid, magnitude);
    int32_t number = magnitude;
    if (magnitude < kExponent) {
      const double draw = (draws[at % 4] >> 8) * 0x1p-24;
      const double steps = std::floor(double{StepsOf(step, magnitude)} + draw);
      number = std::bit_cast<int32_t>(static_cast<float>(steps) * std::bit_cast<float>(step));
    } else {
      ++counts->not_finite;
    }
    if (number > grid.largest && magnitude <= kExponent) number = grid.beyond, ++counts->saturated;
    counts->to_zero += number == 0 && magnitude != 0;
    out[i] = std::bit_cast<float>(number | (bits & ~kMagnitude));
  }
}

}  // namespace

const NumberFormat* FindNumberFormat(std::string_view name) {
  const auto found = std::find_if(kFormats.begin(), kFormats.end(), [&](const auto& f) { return f.name == name; });
  return found == kFormats.end() ? nullptr : &*found;
}

void CastNumbers(const NumberFormat& format, const CastRules& rules, const float* in, int64_t n, float scale,
                 float* out, CastCounts* counts) {
  const Grid grid = GridOf(format, rules.saturate);
  if (rules.stochastic) return CastAtRandom(grid, rules, in, n, scale, out, counts);
  constexpr int64_t kMost = int64_t{1} << 30;  // of the counters of one loop
  for (int64_t from = 0; from < n; from += kMost)
    CastNearest(grid, in + from, std::min(kMost, n - from), scale, out + from, counts);
}

}  // namespace msprobe
