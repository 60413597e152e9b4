#include "curves/factor.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace msprobe {
namespace {

constexpr size_t kFewestSteps = 5;
constexpr double kUnlike = 1.4, kWhole = 0.02, kShare = 0.9;

}  // namespace

std::optional<double> FactorBetween(const CurvePair& pair, double scatter) {
  std::vector<double> ratios;
  for (size_t i = 0; i < pair.size(); ++i) {
    const double a = pair.a[i], b = pair.b[i];
    const bool read = std::isfinite(a) && std::isfinite(b) && std::fabs(a) > 10 * pair.units[i];
    if (read) ratios.push_back(b / a);
  }
  if (ratios.size() < kFewestSteps) return std::nullopt;
  std::vector<double> sorted = ratios;
  std::nth_element(sorted.begin(), sorted.begin() + static_cast<int64_t>(sorted.size() / 2), sorted.end());
  const double middle = sorted[sorted.size() / 2];
  if (!(middle > 0)) return std::nullopt;
  const double times = std::max(middle, 1 / middle), whole = std::round(times);
  if (times < kUnlike || std::fabs(times / whole - 1) > kWhole) return std::nullopt;
  const auto near = [&](double ratio) { return std::fabs(ratio / middle - 1) <= scatter; };
  const auto count = static_cast<double>(std::count_if(ratios.begin(), ratios.end(), near));
  if (count < kShare * static_cast<double>(ratios.size())) return std::nullopt;
  return middle > 1 ? whole : 1 / whole;
}

}  // namespace msprobe
