#include "parity/own_means.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "parity/parts.h"

namespace msprobe {
namespace {

/// Elements of the first input of the model, which has the rows.
double RowsOf(const ParityRank& rank, int step) {
  const ParityPhase& inputs = rank.phase(step, "input");
  return inputs.entries.empty() ? 0 : static_cast<double>(inputs.entries.front().elements());
}

}  // namespace

bool OwnMeans::Take(const std::string& name, const RankParts& parts, const WholeValues& whole, PartsComparison* found) {
  std::map<std::string, size_t> replicas;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts.entries[i]->shape != whole.shape) return false;
    const auto [known, fresh] = replicas.emplace(DataPlaceOf(*parts.ranks[i]), i);
    if (!fresh && RelativeError(parts.values[i], parts.values[known->second]) > found->bounds[i]) return false;
  }
  if (replicas.size() < 2) return false;
  const auto fits = [&](bool by_rows) {
    std::vector<double> mean(whole.values.size());
    double all = 0;
    for (const auto& [unused, i] : replicas) {
      const double weight = by_rows ? RowsOf(*parts.ranks[i], step_) : 1;
      all += weight;
      for (size_t e = 0; e < mean.size(); ++e) mean[e] += weight * parts.values[i][e];
    }
    for (double& value : mean) value /= all;
    return all > 0 && RelativeError(mean, whole.values) <= 4 * found->bounds.front();
  };
  const bool equally = fits(false);
  if (!equally && !fits(true) && !(whole.values.size() == 1 && LiesAmong(parts, whole))) return false;
  for (AxisPlace& axis : found->mapping.axes) {
    if (IsDataAxis(axis.axis)) axis.role = AxisRole::kMean;
  }
  found->kind = PartsKind::kEqual;
  found->errors.assign(parts.size(), 0);
  shares_[name] = equally ? static_cast<double>(replicas.size()) : 0;
  return true;
}

void OwnMeans::Learn(const std::string& name, const RankParts& parts, const WholeValues& whole,
                     std::map<std::string, double>* scales) const {
  const double count = shares_.at(name);
  if (count == 0 || whole.values.size() != 1 || whole.values.front() == 0) return;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts.values[i].size() != 1) continue;
    const double scale = parts.values[i].front() / whole.values.front() * count;
    if (scale != 0 && std::isfinite(scale)) scales->emplace(DataPlaceOf(*parts.ranks[i]), scale);
  }
}

bool LiesAmong(const RankParts& parts, const WholeValues& whole) {
  constexpr double kMost = std::numeric_limits<double>::infinity();
  double low = kMost, high = -kMost;
  for (const auto& values : parts.values) low = std::min(low, values.front()), high = std::max(high, values.front());
  const double slack = 1e-5 * std::abs(whole.values.front());
  return low < high && whole.values.front() >= low - slack && whole.values.front() <= high + slack;
}

}  // namespace msprobe
