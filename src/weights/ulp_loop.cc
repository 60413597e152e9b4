#include "weights/ulp_loop.h"

#include <algorithm>
#include <array>
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

/// In the order of DType; integers are counted as wholes.
template <size_t... kTypes>
constexpr auto LoopsOf(std::index_sequence<kTypes...>) {
  return std::array{PairLoop{
      AddUlps<InfoOf(static_cast<DType>(kTypes)).fraction_bits(), InfoOf(static_cast<DType>(kTypes)).least_power>,
      MergeUlps}...};
}
constexpr auto kLoops = LoopsOf(std::make_index_sequence<static_cast<size_t>(DType::kUnknown) + 1>());

}  // namespace

const PairLoop* UlpLoop(DType a, DType b) {
  const int x = InfoOf(a).digits, y = InfoOf(b).digits;
  const DType coarser = x == 0 ? b : y == 0 || x <= y ? a : b;
  return &kLoops[static_cast<size_t>(coarser)];
}

}  // namespace msprobe
