#include "compare/round_off/fills.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "base/text.h"
#include "tensor/kernels/dtype.h"
#include "tensor/kernels/finfo.h"

namespace msprobe {
namespace {

constexpr double kLeastFill = 9.9e3;
constexpr double kRoom = 4e-3;   // a fill in bfloat16, and one that was added to a score
constexpr double kBeside = 0.1;  // what is nearly as large as the fill is no score

bool IsNear(double value, double fill) { return std::fabs(value - fill) <= kRoom * fill; }

/// Infinities may be texts.
double NumberOf(const StatValue& v) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (v.IsNumber()) return v.AsDouble();
  if (!v.IsText() || !v.IsNanOrInf() || !Contains(v.text, "inf")) return std::numeric_limits<double>::quiet_NaN();
  return Contains(v.text, "-") ? -kInfinity : kInfinity;
}

}  // namespace

bool IsDTypeLimit(double magnitude) {
  for (const DType type : {DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64}) {
    const double limit = InfoOf(type).largest;
    if (std::fabs(magnitude - limit) <= 1e-6 * limit) return true;
  }
  return false;
}

bool IsFill(double value) {
  if (std::isnan(value)) return false;
  const double magnitude = std::fabs(value);
  if (std::isinf(value) || IsDTypeLimit(magnitude) || (IsDTypeLimit(2 * magnitude) && magnitude > 1e30)) return true;
  if (value > -kLeastFill) return false;
  for (const double limit : {InfoOf(DType::kFloat16).largest, 65000.0}) {
    if (IsNear(magnitude, limit)) return true;
  }
  const double power = std::pow(10.0, std::round(std::log10(magnitude)));
  return IsNear(magnitude, power) || IsNear(magnitude, power / 2) || IsNear(magnitude, 3 * power / 10) ||
         IsNear(magnitude, 3 * power);
}

bool HoldsFill(const ItemView& item) {
  const double most = NumberOf(item.stats[kMax]), least = NumberOf(item.stats[kMin]);
  if (!(least < 0) || !IsFill(least)) return false;
  return std::isinf(least) ? !(most == -least) : std::fabs(most) <= kBeside * -least || most == least;
}

bool HoldsBoth(const ItemView& item) {
  if (item.stats[kMax].IsNumber()) return false;  // most are numbers
  const auto text = [&](Stat k) {
    std::string out;
    item.stats[k].AppendText(&out);
    return out;
  };
  return ParseDType(item.dtype) == DType::kBool && ElementsOfShape(item.shape) > 2 && text(kMax) != text(kMin);
}

double AmplitudeWithoutFill(const ItemView& item) {
  double out = 0;
  for (const Stat k : {kMax, kMin}) {
    const double v = NumberOf(item.stats[k]);
    if (std::isfinite(v) && !IsFill(v)) out = std::max(out, std::fabs(v));
  }
  return out;
}

bool BothFills(const StatValue& a, const StatValue& b) {
  const double x = NumberOf(a), y = NumberOf(b);
  return IsFill(x) && IsFill(y) && std::signbit(x) == std::signbit(y);
}

bool FilledOtherwise(const ItemView& a, const ItemView& b) {
  return HoldsFill(a) && HoldsFill(b) && NumberOf(a.stats[kMin]) != NumberOf(b.stats[kMin]);
}

}  // namespace msprobe
