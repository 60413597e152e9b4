#include "lab/relations/ulp_distance.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <vector>

#include "tensor/kernels/metrics_sources.h"

namespace msprobe {
namespace {

constexpr double kApart = std::numeric_limits<double>::infinity();

struct FloatFormat {
  int fraction_bits, smallest_power;
};

std::optional<FloatFormat> FormatOf(DType t) {
  switch (t) {
    case DType::kFloat16: return FloatFormat{10, -14};
    case DType::kBFloat16: return FloatFormat{7, -126};
    case DType::kFloat32: return FloatFormat{23, -126};
    case DType::kFloat64: return FloatFormat{52, -1022};
    default: return std::nullopt;
  }
}

/// The distance of neighbours at a value.
double UlpAt(const FloatFormat& format, double value) {
  const int power = value == 0 ? format.smallest_power : std::max(std::ilogb(value), format.smallest_power);
  return std::ldexp(1.0, power - format.fraction_bits);
}

void MeasureFloats(const FloatFormat& format, const std::vector<double>& got, const std::vector<double>& want,
                   UlpDistance* out) {
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
    out->worst = std::max(out->worst, apart / UlpAt(format, std::max(std::fabs(a), std::fabs(b))));
  }
  if (widest > 0) out->of_largest = widest / UlpAt(format, largest);
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
  const auto got_format = FormatOf(got_type), want_format = FormatOf(want_type);
  if (!got_format || !want_format) return false;
  std::vector<double> a(n), b(n);
  if (!metrics::ToDoubles(got_type, got.data(), n, a.data()) ||
      !metrics::ToDoubles(want_type, want.data(), n, b.data()))
    return false;
  const FloatFormat& coarser = got_format->fraction_bits < want_format->fraction_bits ? *got_format : *want_format;
  MeasureFloats(FormatOf(as).value_or(coarser), a, b, out);
  return true;
}

}  // namespace msprobe
