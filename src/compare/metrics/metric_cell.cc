#include "compare/metrics/metric_cell.h"

#include <cmath>
#include <cstdlib>

#include "base/text.h"

namespace msprobe {

void MetricCell::AppendText(std::string* out) const {
  switch (kind) {
    case Kind::kUnsupported: *out += "unsupported"; return;
    case Kind::kNan: *out += "Nan"; return;
    case Kind::kNA: *out += "N/A"; return;
    case Kind::kShapeUnmatched: *out += "shape unmatched"; return;
    case Kind::kNumber: AppendPyRepr(*out, value); return;
  }
}

MetricCell MetricCell::Rounded(double v) {
  constexpr int kDecimals = 12;
  return Number(RoundedTo(kDecimals, v));
}

double RoundedTo(int decimals, double v) {
  if (!std::isfinite(v)) return v;
  std::string text;
  AppendFixed(text, v, decimals);
  return std::strtod(text.c_str(), nullptr);
}

}  // namespace msprobe
