#include "judge/loss_climb.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace msprobe {
namespace {

constexpr size_t kBlockOfClimb = 6, kStood = 8, kLookedBack = 40, kMostBlocks = 96;  // losses of a block, blocks
constexpr std::array<size_t, 6> kClimbs{12, 16, 20, 24, 32, 48};                     // blocks
constexpr double kFarBeyond = 4;                                                     // times what it rose before
constexpr double kMostAtOnce = 0.3;  // of the climb from block to block: more is a step, which other data make
const double kLeastClimb = std::log(1.4), kLearned = std::log(1.1);

// -log10 of the chance that values of no order rise so often from an earlier one to a later one (Kendall).
double OfOrder(const double* values, size_t count) {
  double rises = 0;
  for (size_t i = 0; i < count; ++i) {
    for (size_t k = i + 1; k < count; ++k) rises += values[k] > values[i] ? 1 : values[k] < values[i] ? -1 : 0;
  }
  const auto n = static_cast<double>(count);
  const double z = rises / std::sqrt(n * (n - 1) * (2 * n + 5) / 18);
  return z <= 0 ? 0 : -std::log10(std::max(0.5 * std::erfc(z / std::numbers::sqrt2), 1e-30));
}

// From a value to a later one.
double LargestRise(const double* values, size_t count) {
  double low = INFINITY, most = 0;
  for (size_t i = 0; i < count; ++i) {
    low = std::min(low, values[i]);
    most = std::max(most, values[i] - low);
  }
  return most;
}

}  // namespace

std::optional<Change> LossClimb::Look(size_t count, double alarm) const {
  if (blocks_.size() < count + kStood) return std::nullopt;
  const double* climb = blocks_.data() + (blocks_.size() - count);
  const double high = *std::max_element(climb - kStood, climb), way = climb[count - 1] - high;
  const size_t known = std::min(blocks_.size() - count, kLookedBack);
  if (way < std::max(kLeastClimb, kFarBeyond * LargestRise(climb - known, known)) || high > *first_ - kLearned) {
    return std::nullopt;
  }
  for (size_t i = 1; i < count; ++i) {
    if (climb[i] - climb[i - 1] > kMostAtOnce * way) return std::nullopt;
  }
  const double strength = OfOrder(climb, count);
  if (strength < alarm) return std::nullopt;
  size_t began = 0;  // the first of those on end that are above all there was
  for (size_t i = count; i-- > 0 && climb[i] > high;) began = i;
  return Change{Detector::kTrend, steps_[blocks_.size() - count + began], strength, std::exp(high),
                std::exp(climb[count - 1])};
}

std::optional<Change> LossClimb::Add(int64_t step, double value, double alarm) {
  if (!(value > 0) || !std::isfinite(value)) {
    open_.clear();
    blocks_.clear();
    steps_.clear();
    return std::nullopt;
  }
  if (open_.empty()) begins_ = step;
  open_.push_back(std::log(value));
  if (open_.size() < kBlockOfClimb) return std::nullopt;
  const auto middle = open_.begin() + kBlockOfClimb / 2;
  std::nth_element(open_.begin(), middle, open_.end());
  if (!first_) first_ = *middle;
  if (blocks_.size() == kMostBlocks) blocks_.erase(blocks_.begin()), steps_.erase(steps_.begin());
  blocks_.push_back(*middle);
  steps_.push_back(begins_);
  open_.clear();
  for (const size_t count : kClimbs) {
    if (const auto change = Look(count, alarm)) {
      blocks_.clear();
      steps_.clear();
      return change;
    }
  }
  return std::nullopt;
}

}  // namespace msprobe
