#include "judge/schedule.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "judge/run_judge.h"

namespace msprobe {
namespace {

constexpr size_t kBlock = 4, kBlocks = 32, kFewestBlocks = 4;
constexpr double kBetterPart = 0.5;  // of a change that the schedule has to make
constexpr double kAtOnce = 0.6;      // of its way between two blocks: a jump
constexpr size_t kFewestUpdates = 3;

double MiddleOf(std::vector<double>* values) {
  const auto middle = values->begin() + static_cast<std::ptrdiff_t>(values->size() / 2);
  std::nth_element(values->begin(), middle, values->end());
  return *middle;
}

}  // namespace

void Schedule::Add(double logarithm) {
  if (last_.size() == kBlock * kBlocks) last_.erase(last_.begin());
  last_.push_back(logarithm);
}

bool Schedule::Explains(double change) const {
  if (is_rate_ && change > 0 ? last_.size() < kBlock * kFewestBlocks : last_.size() < 2) return false;
  if (!is_rate_ && (change > 0 || last_.size() < kBlock * kFewestBlocks)) return false;
  const double sign = change > 0 ? 1 : -1;
  if (is_rate_ && change < 0) {
    return *std::max_element(last_.begin(), last_.end()) - last_.back() >= -change * kBetterPart;
  }
  std::vector<double> blocks;  // the newest first
  for (size_t end = last_.size(); end >= kBlock; end -= kBlock) {
    std::vector<double> block(last_.begin() + static_cast<std::ptrdiff_t>(end - kBlock),
                              last_.begin() + static_cast<std::ptrdiff_t>(end));
    blocks.push_back(MiddleOf(&block));
  }
  // The stretch over which it came furthest.
  double way = 0;
  size_t from = 0;
  for (size_t i = 1; i < blocks.size(); ++i) {
    if (sign * (blocks[0] - blocks[i]) > way) way = sign * (blocks[0] - blocks[i]), from = i;
  }
  if (from < kFewestBlocks - 1 || way < std::fabs(change) * kBetterPart) return false;
  double most = 0;
  for (size_t i = 0; i < from; ++i) most = std::max(most, sign * (blocks[i] - blocks[i + 1]));
  return most <= kAtOnce * way;
}

void RunJudge::PutRate(double rate) {
  if (!rates_) rates_.emplace(true);
  if (rate > 0) rates_->Add(std::log(rate));
}

void RunJudge::FollowSchedules() {
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
    updates_.try_emplace(rank, false).first->second.Add(MiddleOf(&values));
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
