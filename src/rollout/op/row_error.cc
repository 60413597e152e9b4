#include "rollout/op/row_error.h"

#include <bit>
#include <cstdint>

#include "tensor/kernels/finfo.h"

namespace msprobe {
namespace {

double NormOf(const float* values, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; ++i) sum += static_cast<double>(values[i]) * values[i];
  return std::sqrt(sum);
}

}  // namespace

RowErrors ErrorsOf(const RowMatrix& values, const RowMatrix& expected) {
  constexpr double kSmall = 0.1;  // of the usual row
  RowErrors out;
  double squares = 0;
  std::vector<double> sizes(expected.rows);
  for (size_t i = 0; i < expected.rows; ++i) {
    sizes[i] = NormOf(expected.row(i), expected.width);
    if (std::isfinite(sizes[i])) squares += sizes[i] * sizes[i];
  }
  const double usual = std::sqrt(squares / static_cast<double>(std::max<size_t>(expected.rows, 1)));
  out.rows.resize(expected.rows);
  for (size_t i = 0; i < expected.rows; ++i) {
    double sum = 0;
    bool other_kind = false;
    for (size_t j = 0; j < expected.width; ++j) {
      const double a = values.row(i)[j], b = expected.row(i)[j];
      if (a == b || (std::isnan(a) && std::isnan(b))) continue;
      other_kind |= !std::isfinite(a) || !std::isfinite(b);
      sum += (a - b) * (a - b);
    }
    const double size = std::max(sizes[i], kSmall * usual);
    out.rows[i] = other_kind ? HUGE_VAL : sum == 0 ? 0 : size == 0 ? 1 : std::sqrt(sum) / size;
    out.mean += out.rows[i] / static_cast<double>(expected.rows);
    if (out.rows[i] > out.largest) out.largest = out.rows[i], out.worst = i;
  }
  return out;
}

DType CoarserOf(DType a, DType b) { return InfoOf(a).unit() >= InfoOf(b).unit() ? a : b; }

double RoundingFloor(DType a, DType b) {
  const double unit = InfoOf(CoarserOf(a, b)).unit();
  // Products of thousands of terms add up by their own order where numbers have many digits; where they have few, an
  // operation rounds what it stores, and once or twice on the way.
  constexpr double kStored = 4, kLongSums = 340;
  return unit <= InfoOf(DType::kFloat32).unit() ? kLongSums * InfoOf(DType::kFloat32).unit() : kStored * unit;
}

void CutToCommon(RowMatrix* a, RowMatrix* b) {
  const size_t width = std::min(a->width, b->width);
  for (RowMatrix* m : {a, b}) {
    if (m->width == width) continue;
    for (size_t i = 0; i < m->rows; ++i)
      std::copy(m->row(i), m->row(i) + width, m->values.begin() + static_cast<std::ptrdiff_t>(i * width));
    m->width = width;
    m->values.resize(m->rows * width);
  }
}

DType GridOf(const RowMatrix& values) {
  if (values.dtype != DType::kFloat32 && values.dtype != DType::kFloat64) return DType::kUnknown;
  uint32_t low = 0;
  size_t distinct = 0;
  for (const float v : values.values) {
    if (v == 0 || !std::isfinite(v)) continue;
    low |= std::bit_cast<uint32_t>(v);
    ++distinct;
  }
  constexpr uint32_t kBelowBFloat16 = 0xFFFF, kBelowFloat16 = 0x1FFF;
  constexpr size_t kTelling = 16;
  if (distinct < kTelling) return DType::kUnknown;
  if ((low & kBelowBFloat16) == 0) return DType::kBFloat16;
  return (low & kBelowFloat16) == 0 ? DType::kFloat16 : DType::kUnknown;
}

}  // namespace msprobe
