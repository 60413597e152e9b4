#include "judge/schedule.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace msprobe {
namespace {

constexpr size_t kBlock = 4, kBlocks = 32, kFewestBlocks = 4;
constexpr double kBetterPart = 0.5;                // of a change that the schedule has to make
constexpr double kSameHeight = 0.05, kJump = 0.4;  // of a restart, and the least of its way
constexpr double kAtOnce = 0.6;                    // of its way between two blocks: a jump

double MiddleOf(std::vector<double>* values) {
  const auto middle = values->begin() + static_cast<std::ptrdiff_t>(values->size() / 2);
  std::nth_element(values->begin(), middle, values->end());
  return *middle;
}

}  // namespace

void Schedule::Add(double logarithm) {
  const double rise = last_.empty() ? 0 : logarithm - last_.back();
  if (rise > kJump) restart_ = logarithm <= highest_ + kSameHeight ? std::optional(rise) : std::nullopt;
  highest_ = last_.empty() ? logarithm : std::max(highest_, logarithm);
  if (last_.size() == kBlock * kBlocks) last_.erase(last_.begin());
  last_.push_back(logarithm);
}

bool Schedule::Explains(double change) const {
  if (is_rate_ && change > 0 ? last_.size() < kBlock * kFewestBlocks : last_.size() < 2) return false;
  if (!is_rate_ && (change > 0 || last_.size() < kBlock * kFewestBlocks)) return false;
  const double sign = change > 0 ? 1 : -1;
  if (is_rate_ && change > 0 && restart_ && *restart_ >= change * kBetterPart) return true;
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

}  // namespace msprobe
