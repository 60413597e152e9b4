#include "parity/doubt.h"

#include <algorithm>
#include <cmath>

namespace msprobe {

std::vector<double> DoubtOf(const RankParts& parts, const WholeValues& whole, const PartsComparison& found) {
  const std::vector<int64_t>& shape = whole.shape;
  std::vector<double> index(whole.values.size()), doubt(whole.values.size());
  for (size_t e = 0; e < index.size(); ++e) index[e] = static_cast<double>(e);
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::vector<double> at = Taken(index, shape, found.mapping.places[i]);
    const auto& valid = parts.entries[i]->valid;
    for (size_t e = 0; e < at.size(); ++e) {
      if (valid && (static_cast<int64_t>(e) < valid->first || static_cast<int64_t>(e) >= valid->second)) continue;
      const auto place = static_cast<size_t>(at[e]);
      doubt[place] = std::max(doubt[place], std::abs(parts.values[i][e] - whole.values[place]));
    }
  }
  for (size_t e = 0; e < doubt.size(); ++e) {
    const double size = std::abs(whole.values[e]);
    doubt[e] = size > doubt[e] ? doubt[e] / size : doubt[e] > 0 ? 1 : 0;
  }
  return doubt;
}

void AllowForDoubt(std::vector<double> doubt, const RankParts& change, const WholeValues& whole,
                   PartsComparison* found) {
  double most = 0;
  for (const double value : whole.values) most = std::max(most, std::abs(value));
  // Only where the sign may be another one is a whole step in doubt.
  for (size_t e = 0; e < doubt.size() && e < whole.values.size(); ++e) {
    doubt[e] = doubt[e] >= 1 ? 2 * most : 2 * doubt[e] * std::abs(whole.values[e]);
  }
  for (size_t i = 0; i < change.size(); ++i) {
    const std::vector<double> own = Taken(doubt, whole.shape, found->mapping.places[i]);
    std::vector<double> values = change.values[i];
    if (own.size() != values.size() || found->expected[i].size() != values.size()) return;
    for (size_t e = 0; e < values.size(); ++e) {
      const double off = values[e] - found->expected[i][e];
      values[e] -= std::clamp(off, -own[e], own[e]);
    }
    found->errors[i] = RelativeError(values, found->expected[i]);
  }
}

}  // namespace msprobe
