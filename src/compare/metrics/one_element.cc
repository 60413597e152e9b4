#include "compare/metrics/one_element.h"

#include <cmath>
#include <limits>

namespace msprobe {
namespace {

double ElementOf(const NonFinite& kinds) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (kinds.nan) return std::numeric_limits<double>::quiet_NaN();
  return kinds.plus_inf ? kInfinity : kinds.minus_inf ? -kInfinity : 1;
}

}  // namespace

OneElementErrors ErrorsOfOne(const TensorMetrics& metrics) {
  if (metrics.target.total() + metrics.golden.total() == 0) return {metrics.max_abs_err, metrics.max_relative_err};
  const double a = ElementOf(metrics.target), b = ElementOf(metrics.golden), difference = std::fabs(a - b);
  return {difference, difference / std::fabs(b)};
}

}  // namespace msprobe
