#include "weights/ulp_loop.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <utility>

#include "tensor/kernels/finfo.h"
#include "tensor/kernels/metrics_sources.h"

namespace msprobe {
namespace {

template <int kMantissa, int kLeastExponent>
void AddUlps(const double* a, const double* b, size_t n, LoopSums* sums) {
  constexpr metrics::UlpFormat kFormat{PowerOfTwo(kLeastExponent), PowerOfTwo(kMantissa - 1)};
  metrics::ActivePairs().ulps(a, b, n, kFormat, sums->at.data());
}

void MergeUlps(const LoopSums& from, double times, LoopSums* to) {
  to->at[0] += times * from.at[0];
  for (size_t i = 1; i < to->at.size(); ++i) to->at[i] = std::max(to->at[i], from.at[i]);
}

/// The step of a type at the larger of two values, in sixteenths.
template <int kMantissa, int kLeastExponent, int kSixteenths>
void AddExcess(const double* a, const double* b, size_t n, LoopSums* sums) {
  constexpr double kLeast = PowerOfTwo(kLeastExponent), kStep = PowerOfTwo(-kMantissa) * kSixteenths / 16;
  constexpr uint64_t kExponent = uint64_t{0x7FF} << 52;
  double most = sums->at[0];
  for (size_t i = 0; i < n; ++i) {
    const double size = std::max(std::fabs(a[i]), std::fabs(b[i]));
    const auto power = std::bit_cast<double>(std::bit_cast<uint64_t>(size) & kExponent);
    most = std::max(most, std::fabs(a[i] - b[i]) - std::max(power, kLeast) * kStep);
  }
  sums->at[0] = most;
}

void MergeMost(const LoopSums& from, double, LoopSums* to) { to->at[0] = std::max(to->at[0], from.at[0]); }

/// In the order of DType; integers are counted as wholes.
template <size_t... kTypes>
constexpr auto LoopsOf(std::index_sequence<kTypes...>) {
  return std::array{PairLoop{
      AddUlps<InfoOf(static_cast<DType>(kTypes)).fraction_bits(), InfoOf(static_cast<DType>(kTypes)).least_power>,
      MergeUlps}...};
}
/// Of one side that is rounded, and of two, in the order of DType.
template <int kSixteenths, size_t... kTypes>
constexpr auto ExcessLoopsOf(std::index_sequence<kTypes...>) {
  return std::array{PairLoop{AddExcess<InfoOf(static_cast<DType>(kTypes)).fraction_bits(),
                                       InfoOf(static_cast<DType>(kTypes)).least_power, kSixteenths>,
                             MergeMost}...};
}

constexpr auto kLoops = LoopsOf(std::make_index_sequence<static_cast<size_t>(DType::kUnknown) + 1>());

constexpr auto kOneRounded = ExcessLoopsOf<8>(std::make_index_sequence<static_cast<size_t>(DType::kUnknown) + 1>());
constexpr auto kBothRounded = ExcessLoopsOf<16>(std::make_index_sequence<static_cast<size_t>(DType::kUnknown) + 1>());

DType CoarserOf(DType a, DType b) {
  const int x = InfoOf(a).digits, y = InfoOf(b).digits;
  return x == 0 ? b : y == 0 || x <= y ? a : b;
}

}  // namespace

const PairLoop* UlpLoop(DType a, DType b) { return &kLoops[static_cast<size_t>(CoarserOf(a, b))]; }

const PairLoop* ExcessLoop(DType a, DType b) {
  const DType coarser = CoarserOf(a, b);
  const int digits = InfoOf(coarser).digits;
  if (digits == 0 || digits >= InfoOf(DType::kFloat32).digits) return nullptr;
  return a == b ? &kBothRounded[static_cast<size_t>(coarser)] : &kOneRounded[static_cast<size_t>(coarser)];
}

}  // namespace msprobe
