// What all layers do together: the median over the rows of a table of how far each is from its own level. One layer
// does not move it, and its noise is less than that of any of them. What a layer does apart from that has less noise,
// too: the data of a step move all of them.
#include <algorithm>
#include <cmath>
#include <map>

#include "judge/run_judge.h"

namespace msprobe {
namespace {

constexpr double kFollow = 1.0 / 48;  // of the level, at each step
constexpr size_t kFewestRows = 3, kSettled = 24;

}  // namespace

void RunJudge::JudgeApart(size_t number, double away) {
  Row& row = rows_[number];
  if (!row.apart) {
    row.apart.emplace(SeriesScale::kLinear, false, LeastOf(row.key.table));
    row.apart->IgnoreNoise();
    ++watched_;
  }
  auto change = row.apart->Add(step_, away, support_strength());
  if (!change || IsOfGradient(row, *change)) return;
  change->strength *= TrustIn(row.key.table);
  if (IsOfBatch(row, *change)) change->strength = support_strength();
  const double now = row.now[row.norm];
  change->before = now / std::exp(change->after - change->before);
  change->after = now;
  Tell(number, row.norm, *change);
  changes_.back().against_layers = true;
}

// Where little is left to learn, gradients are small, and one batch that is not learned yet leaps out. A gradient that
// is no larger than there were is no alarm by itself in a step whose loss stands out in no way.
bool RunJudge::IsOfBatch(const Row& row, const Change& change) const {
  if (!IsGradient(row.key.table) || change.detector != Detector::kSpike || change.after <= change.before) return false;
  bool loss = false;
  for (const Row& other : rows_) {
    if (!other.loss || other.seen != step_count_) continue;
    if (other.loss->StandsOut()) return false;
    loss = true;
  }
  if (!loss) return false;
  if (!row.together) return row.now[row.norm] <= row.highest;
  size_t here = 0, larger = 0;
  for (const Row& other : rows_) {
    if (other.together || other.key.rank != row.key.rank || other.key.table != row.key.table) continue;
    if (other.norm == SIZE_MAX || other.seen != step_count_) continue;
    ++here;
    larger += other.now[other.norm] > other.highest ? 1 : 0;
  }
  return 2 * larger < here;
}

SeriesWatch* RunJudge::AddTogether(size_t rank, const std::string& table) {
  Row row;
  row.key = {rank, table, 0, "", -1};
  row.columns = {"norm"};
  row.together = true;
  row.norm = 0;
  row.watches.resize(1);
  row.watches[0].emplace(SeriesScale::kLinear, false);
  if (IsGradient(table)) row.watches[0]->IgnoreDips();
  row.now = row.before = {0};
  rows_.push_back(std::move(row));
  ++few_;
  return &*rows_.back().watches[0];
}

void RunJudge::JudgeTogether() {
  struct Away {
    size_t row;
    double value;
  };
  std::map<std::pair<size_t, std::string>, std::vector<Away>> all;
  for (size_t i = 0; i < rows_.size(); ++i) {
    Row& row = rows_[i];
    if (row.together || row.norm == SIZE_MAX || row.key.table == "loss" || IsGiven(row.key.table) || !IsHere(i))
      continue;
    const double value = row.now[row.norm];
    if (!(value > 0) || !std::isfinite(value)) continue;
    const double y = std::log(value);
    if (row.levels++ == 0) row.level = y;
    const double away = y - row.level;
    row.level += std::max(kFollow, 1.0 / static_cast<double>(row.levels)) * away;
    if (row.levels > kSettled) all[{row.key.rank, row.key.table}].push_back({i, away});
  }
  for (auto& [place, values] : all) {
    if (values.size() < kFewestRows) continue;
    const auto [known, fresh] = together_.emplace(place, rows_.size());
    if (fresh) AddTogether(place.first, place.second);
    std::vector<double> sorted;
    for (const Away& away : values) sorted.push_back(away.value);
    std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2), sorted.end());
    const double median = sorted[sorted.size() / 2];
    for (const Away& away : values) JudgeApart(away.row, away.value - median);
    Row& row = rows_[known->second];
    row.seen = step_count_;
    row.now[0] = median;
    if (auto change = row.watches[0]->Add(step_, row.now[0], support_strength())) {
      if (change->detector != Detector::kVariance) {
        change->after = std::exp(change->after - change->before);
        change->before = 1;
      }
      if (IsOfBatch(row, *change)) change->strength = support_strength();
      if (!IsOfSchedule(row, *change)) Tell(known->second, 0, *change);
    }
  }
}

}  // namespace msprobe
