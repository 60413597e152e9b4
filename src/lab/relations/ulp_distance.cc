#include "lab/relations/ulp_distance.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "tensor/kernels/finfo.h"
#include "tensor/kernels/metrics_sources.h"

namespace msprobe {
namespace {

constexpr double kApart = std::numeric_limits<double>::infinity();

void MeasureFloats(DType format, const std::vector<double>& got, const std::vector<double>& want, UlpDistance* out) {
  double largest = 0, widest = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double a = got[i], b = want[i];
    for (const double v : {a, b}) largest = std::isfinite(v) ? std::max(largest, std::fabs(v)) : largest;
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    ++out->differ;
    if (!std::isfinite(a) || !std::isfinite(b)) {
      out->worst = widest = kApart;
      continue;
    }
    const double apart = std::fabs(a - b);
    widest = std::max(widest, apart);
    out->worst = std::max(out->worst, apart / UlpAt(std::max(std::fabs(a), std::fabs(b)), format));
  }
  if (widest > 0) out->of_largest = widest / UlpAt(largest, format);
}

template <typename T>
void MeasureExact(const std::string& got, const std::string& want, UlpDistance* out) {
  for (size_t at = 0; at < got.size(); at += sizeof(T)) {
    T a, b;
    std::memcpy(&a, got.data() + at, sizeof(T));
    std::memcpy(&b, want.data() + at, sizeof(T));
    if (a == b) continue;
    ++out->differ;
    out->worst = std::max(out->worst, std::fabs(static_cast<double>(a) - static_cast<double>(b)));
  }
  out->of_largest = out->worst;
}

}  // namespace

void UlpDistance::Add(const UlpDistance& other) {
  elements += other.elements, differ += other.differ;
  worst = std::max(worst, other.worst), of_largest = std::max(of_largest, other.of_largest);
}

bool MeasureUlp(DType got_type, const std::string& got, DType want_type, const std::string& want, UlpDistance* out,
                DType as) {
  *out = {};
  const size_t got_size = ElementSize(got_type), want_size = ElementSize(want_type);
  if (got_size == 0 || want_size == 0 || got.size() % got_size != 0 || want.size() % want_size != 0) return false;
  const size_t n = got.size() / got_size;
  if (want.size() / want_size != n) return false;
  out->elements = n;
  if (got_type == want_type && (got_type == DType::kInt64 || got_type == DType::kBool)) {
    got_type == DType::kInt64 ? MeasureExact<int64_t>(got, want, out) : MeasureExact<uint8_t>(got, want, out);
    return true;
  }
  if (!IsFloating(got_type) || !IsFloating(want_type)) return false;
  std::vector<double> a(n), b(n);
  if (!metrics::ToDoubles(got_type, got.data(), n, a.data()) ||
      !metrics::ToDoubles(want_type, want.data(), n, b.data()))
    return false;
  const DType coarser = InfoOf(got_type).digits < InfoOf(want_type).digits ? got_type : want_type;
  MeasureFloats(IsFloating(as) ? as : coarser, a, b, out);
  return true;
}

}  // namespace msprobe
