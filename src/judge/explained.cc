// What a schedule explains of updates: the learning rate that a log has, or what all updates have in common.
#include <algorithm>
#include <cmath>

#include "judge/run_judge.h"

namespace msprobe {
namespace {

constexpr size_t kFewestUpdates = 3;

}  // namespace

void RunJudge::PutRate(double rate) {
  rates_of_log_ = true;
  AddRate(rate);
}

void RunJudge::AddRate(double rate) {
  if (!rates_) rates_.emplace(true);
  if (rate > 0) rates_->Add(std::log(rate));
}

void RunJudge::FollowSchedules() {
  double rate = 0;  // the largest of all groups
  for (size_t i = 0; i < rows_.size(); ++i) {
    if (rows_[i].key.table == "learning_rate" && IsHere(i)) rate = std::max(rate, rows_[i].now[0]);
  }
  if (rate > 0 && !rates_of_log_) AddRate(rate);
  if (rates_) return;
  std::map<size_t, std::vector<double>> updates;
  for (size_t i = 0; i < rows_.size(); ++i) {
    const Row& row = rows_[i];
    if (row.together || row.norm == SIZE_MAX || row.key.table != "param_update" || !IsHere(i)) continue;
    if (row.now[row.norm] > 0 && std::isfinite(row.now[row.norm])) {
      updates[row.key.rank].push_back(std::log(row.now[row.norm]));
    }
  }
  for (auto& [rank, values] : updates) {
    if (values.size() < kFewestUpdates) continue;
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    updates_.try_emplace(rank, false).first->second.Add(*middle);
  }
}

bool RunJudge::IsOfSchedule(const Row& row, const Change& change) const {
  if (row.key.table != "param_update") return false;
  if (!(change.before > 0) || !(change.after > 0) || change.detector == Detector::kVariance) return false;
  const double moved = std::log(change.after / change.before);
  if (rates_) return rates_->Explains(moved);
  const auto known = updates_.find(row.key.rank);
  return known != updates_.end() && known->second.Explains(moved);
}

}  // namespace msprobe
