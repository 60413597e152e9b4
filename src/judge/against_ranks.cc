// What a rank does apart from the others: row by row, and in all rows of a table together.
#include <algorithm>
#include <cmath>

#include "judge/run_judge.h"

namespace msprobe {
namespace {

constexpr size_t kFewestRowsOfRank = 3, kFewestForMedian = 3;

}  // namespace

// How far each is from the others, and of three and more from the median of all, which the data of a step move little.
void RunJudge::JudgeAgainstRanks(Peers* peers) {
  if (peers->equal > 0) return;
  std::vector<double> values;
  double sum = 0;
  for (const size_t row : peers->rows) {
    const Row& r = rows_[row];
    if (r.norm == SIZE_MAX || !(r.now[r.norm] > 0) || !std::isfinite(r.now[r.norm])) return;
    values.push_back(std::log(r.now[r.norm]));
    sum += values.back();
  }
  std::vector<double> sorted = values;
  std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2), sorted.end());
  const double median = sorted[sorted.size() / 2];
  for (size_t i = 0; i < values.size(); ++i) {
    Row& row = rows_[peers->rows[i]];
    if (IsGradient(row.key.table)) {
      const double others = (sum - values[i]) / static_cast<double>(values.size() - 1);
      from_ranks_[{row.key.rank, row.key.table}].push_back(values[i] - others);
    }
    if (values.size() < kFewestForMedian) continue;
    if (!row.against) {
      row.against.emplace(SeriesScale::kLinear, false);
      row.against->IgnoreCalm();
      if (IsGradient(row.key.table)) row.against->IgnoreDips();
      ++watched_;
    }
    if (const auto change = row.against->Add(step_, values[i] - median, support_strength())) {
      Tell(peers->rows[i], row.norm, *change, static_cast<int64_t>(row.key.rank));
      changes_.back().against_ranks = true;
      if (change->detector == Detector::kVariance) continue;  // its values are noise, not norms
      changes_.back().change.before = std::exp(change->before + median);
      changes_.back().change.after = std::exp(change->after + median);
    }
  }
}

// The data of a rank move one row; what scales its loss or its gradients moves all of them, at all steps.
void RunJudge::JudgeRanksTogether() {
  for (auto& [place, values] : from_ranks_) {
    if (values.size() < kFewestRowsOfRank) continue;
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    const auto [known, fresh] = ranks_together_.try_emplace(place);
    if (fresh) {
      known->second.row = rows_.size();
      AddTogether(place.first, place.second);
      --few_;  // it weighs how many times it looks itself
    }
    auto change = known->second.watch.Add(step_, *middle, support_strength());
    if (!change) continue;
    change->after = std::exp(change->after - change->before);
    change->before = 1;
    Tell(known->second.row, 0, *change, static_cast<int64_t>(place.first));
    changes_.back().against_ranks = true;
  }
  from_ranks_.clear();
}

}  // namespace msprobe
