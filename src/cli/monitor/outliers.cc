#include "cli/monitor/outliers.h"

#include <algorithm>
#include <cmath>

namespace msprobe {
namespace {

constexpr size_t kBeside = 4, kFewestBeside = 3;
constexpr double kTimesSpread = 2;  // of what the neighbours are apart
const double kLeastOut = std::log(1.2);

bool HasPlace(float value) { return std::isfinite(value) && value > 0; }

}  // namespace

std::vector<int> OutOfLine(const std::vector<float>& values) {
  std::vector<int> out(values.size(), 0);
  for (size_t i = 0; i < values.size(); ++i) {
    if (!HasPlace(values[i])) continue;
    double low = INFINITY, high = -INFINITY;
    size_t before = 0, count = 0;
    for (size_t k = i - std::min(i, kBeside); k <= std::min(i + kBeside, values.size() - 1); ++k) {
      if (k == i || !HasPlace(values[k])) continue;
      const double y = std::log(values[k]);
      low = std::min(low, y), high = std::max(high, y);
      ++count;
      before += k < i ? 1 : 0;
    }
    if (before == 0 || count < kFewestBeside) continue;
    const double y = std::log(values[i]), least = std::max(kTimesSpread * (high - low), kLeastOut);
    out[i] = y - high > least ? 1 : low - y > least ? -1 : 0;
  }
  return out;
}

}  // namespace msprobe
