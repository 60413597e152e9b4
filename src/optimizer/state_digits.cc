#include "optimizer/state_digits.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "optimizer/weight_values.h"
#include "tensor/kernels/finfo.h"
#include "tensor/kernels/metrics_sources.h"

namespace msprobe {

void UsedDigits::Add(double value) {
  if (value == 0 || !std::isfinite(value)) return;
  ++told;
  most = std::max(most, 53 - std::countr_zero(std::bit_cast<uint64_t>(value) | (uint64_t{1} << 52)));
}

DType UsedDigits::Held(DType dtype) const {
  constexpr size_t kFewest = 32;
  if (told < kFewest) return DType::kUnknown;
  if (most <= InfoOf(DType::kBFloat16).digits) return DType::kBFloat16;
  return most <= InfoOf(DType::kFloat16).digits ? DType::kFloat16 : dtype;
}

DType HeldIn(const RecordedState& state) {
  const FileTensor& t = state.after;
  if (!t.data || !IsFloating(t.dtype)) return DType::kUnknown;
  if (FractionBits(t.dtype) < FractionBits(DType::kFloat32)) return t.dtype;
  int64_t count = 1;
  for (const int64_t n : t.shape) count *= n;
  std::vector<double> values(static_cast<size_t>(count));
  if (!metrics::ToDoubles(t.dtype, static_cast<const char*>(t.data), values.size(), values.data()))
    return DType::kUnknown;
  UsedDigits used;
  for (const double v : values) used.Add(v);
  return used.Held(t.dtype);
}

}  // namespace msprobe
