#include "parity/losses.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "parity/own_means.h"

namespace msprobe {
namespace {

double SumOf(const ParityPhase& losses) {
  double sum = 0;
  for (const ParityEntry& entry : losses.entries) {
    for (const double value : ElementsOf(entry)) sum += value;
  }
  return sum;
}

double MeanOf(const ParityPhase& losses) { return SumOf(losses) / static_cast<double>(losses.entries.size()); }

}  // namespace

size_t LossesOf(const ParityRun& run, int step) {
  size_t most = 0;
  for (const ParityRank& rank : run) most = std::max(most, rank.phase(step, "loss").entries.size());
  return most;
}

void AllowOwnRows(const RankParts& parts, const WholeValues& whole, PartsComparison* found) {
  const double golden = whole.values.front();
  std::map<std::string, double> rows;
  double sum = 0, low = parts.values.front().front(), high = low;
  for (size_t i = 0; i < parts.size(); ++i) rows.emplace(DataPlaceOf(*parts.ranks[i]), parts.values[i].front());
  for (const auto& [place, value] : rows) sum += value;
  for (const auto& values : parts.values) low = std::min(low, values.front()), high = std::max(high, values.front());
  const double error = RelativeError({sum / static_cast<double>(rows.size())}, {golden});
  const double mean_bound = 4 * found->bounds.front();
  const bool mean = rows.size() > 1 && error <= mean_bound;
  if (!mean && !LiesAmong(parts, whole)) return;
  for (AxisPlace& axis : found->mapping.axes) {
    if (IsDataAxis(axis.axis)) axis.role = AxisRole::kMean;
  }
  found->kind = PartsKind::kEqual;
  found->errors.assign(parts.size(), error);
  // Unequal numbers of rows, which nothing says, move the mean within what the ranks have.
  found->bounds.assign(parts.size(), mean ? mean_bound : std::max((high - low) / std::abs(golden), error));
}

MicroBatches CompareMicroBatches(const ParityRun& ranks, const ParityRun& reference, const ParityRun& rounded,
                                 int step) {
  MicroBatches out;
  const ParityPhase& golden = reference.front().phase(step, "loss");
  out.parts = PartsOf(ranks, step, "loss", golden.entries.front().name);
  out.whole = WholeOf(golden.entries.front(), nullptr);
  out.whole.values = {MeanOf(golden)};
  if (!rounded.empty()) {
    const ParityPhase& again = rounded.front().phase(step, "loss");
    if (again.entries.size() == golden.entries.size()) out.whole.rounded = {MeanOf(again)};
  }
  const size_t number = LossesOf(ranks, step);
  const bool all = std::all_of(out.parts.ranks.begin(), out.parts.ranks.end(), [&](const ParityRank* rank) {
    return rank->phase(step, "loss").entries.size() == number;
  });
  if (out.parts.size() == 0 || !all) return out;
  for (const bool divided : {false, true}) {
    for (size_t i = 0; i < out.parts.size(); ++i) {
      const ParityPhase& own = out.parts.ranks[i]->phase(step, "loss");
      out.parts.values[i] = {divided ? SumOf(own) : MeanOf(own)};
    }
    out.found = CompareParts(out.parts, out.whole);
    if (out.found.kind == PartsKind::kDiffers) AllowOwnRows(out.parts, out.whole, &out.found);
    if (out.found.kind != PartsKind::kDiffers) return out;
  }
  out.found = {};  // by what they are weighted nothing says
  return out;
}

}  // namespace msprobe
