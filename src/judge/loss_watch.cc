#include "judge/loss_watch.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <utility>

namespace msprobe {
namespace {

constexpr std::array<size_t, 5> kWindows{LossWatch::kFewestBefore, 48, 96, 200, 400};
constexpr std::array<size_t, 4> kRises{0, 2, 5, 10};  // losses that it may rise for before it stands
constexpr size_t kMostKept = 400 + kRises.back() + LossWatch::kInRow;
const double kTwice = std::log(2), kNoRise = std::log(1.3);
constexpr double kLeastScale = 0.025;   // of noise, on the logarithm: half of its range
constexpr double kLeastOfFirst = 0.05;  // of the loss of the first steps: below, there is nothing left to learn
constexpr double kLeastOfRange = 0.5;   // of all values, of losses on both sides of zero
constexpr double kMostIndependent = 2;  // of four in a row
constexpr double kBeyondAll = 8, kAboveFirst = 1.5, kLeastShown = 1.2, kLeastOfOne = 1.5, kOnTheWay = 0.3;
constexpr int64_t kAboutOnset = 3;  // steps: a level is known to begin to a few
constexpr size_t kFirst = 5, kNear = 12, kLastFew = 8;
constexpr double kMostOfLeap = 30;  // never as certain as a relation

double MedianOf(std::span<const double> values) {
  std::vector<double> sorted(values.begin(), values.end());
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  return *middle;
}

// By how much values behind each other are alike: the share of them that are worth one.
double Worth(const std::vector<double>& values) {
  double mean = 0, squares = 0, product = 0;
  for (const double v : values) mean += v / static_cast<double>(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    squares += (values[i] - mean) * (values[i] - mean);
    if (i > 0) product += (values[i] - mean) * (values[i - 1] - mean);
  }
  const double alike = squares > 0 ? std::clamp(product / squares, 0.0, 0.95) : 0;
  return (1 - alike) / (1 + alike);
}

// A fall before the leap is no noise: what it would have been at the level of the end.
void LevelFall(std::vector<double>* values) {
  const auto n = static_cast<double>(values->size());
  double mean = 0, product = 0, squares = 0;
  for (const double v : *values) mean += v / n;
  for (size_t i = 0; i < values->size(); ++i) {
    const double at = static_cast<double>(i) - (n - 1) / 2;
    product += at * ((*values)[i] - mean);
    squares += at * at;
  }
  const double slope = product / squares;
  if (slope >= 0) return;
  for (size_t i = 0; i < values->size(); ++i) (*values)[i] += slope * (n - 1 - static_cast<double>(i));
}

double LargestOf(std::span<const double> values) { return *std::max_element(values.begin(), values.end()); }

// -log10 of the chance that of before + last values the last are the largest ones.
double OfRank(double before, double last) {
  const double ways = std::lgamma(before + last + 1) - std::lgamma(before + 1) - std::lgamma(last + 1);
  return ways / std::log(10);
}

}  // namespace

double LossWatch::Lowest(size_t in_row) const {
  return *std::min_element(values_.end() - static_cast<std::ptrdiff_t>(in_row), values_.end());
}

// On the logarithm, where all are positive.
std::optional<LossWatch::Way> LossWatch::WayOut(size_t first, size_t end, size_t in_row) const {
  std::vector<double> logs;
  for (size_t i = first; i < end; ++i) logs.push_back(std::log(values_[i]));
  const double near = LargestOf(std::span(logs).last(kLastFew));
  const size_t half = logs.size() / 2;
  const bool rose = LargestOf(std::span(logs).subspan(half)) > LargestOf(std::span(logs).first(half)) + kNoRise;
  if (rose && end + in_row < values_.size()) return std::nullopt;  // it rose before it is said to begin to rise
  LevelFall(&logs);
  const auto [low, high] = std::minmax_element(logs.begin(), logs.end());
  const double gap = std::log(Lowest(in_row)) - std::max(*high, near);
  const double stands = MedianOf(std::span(values_).last(in_row));
  if (gap < kTwice || stands < kLeastOfFirst * MedianOf(first_)) return std::nullopt;
  return Way{gap, std::max((*high - *low) / 2, kLeastScale), Worth(logs)};
}

// Losses on both sides of zero: how far from their middle, up or down.
std::optional<LossWatch::Way> LossWatch::WayFromMiddle(size_t first, size_t end, size_t in_row) const {
  const double middle = MedianOf(std::span(values_).subspan(first, end - first));
  std::vector<double> away;
  for (size_t i = first; i < end; ++i) away.push_back(std::fabs(values_[i] - middle));
  const double most = LargestOf(away), usual = MedianOf(away);
  double least = INFINITY;
  for (size_t i = values_.size() - in_row; i < values_.size(); ++i) {
    least = std::min(least, std::fabs(values_[i] - middle));
  }
  if (!(usual > 0) || least < 2 * most || least < kLeastOfRange * (high_ - low_)) return std::nullopt;
  std::vector<double> given(values_.begin() + static_cast<std::ptrdiff_t>(first),
                            values_.begin() + static_cast<std::ptrdiff_t>(end));
  return Way{std::log(least / most), std::max(std::log(most / usual), kTwice), Worth(given)};
}

LossWatch::Found LossWatch::Strongest(size_t in_row, double alarm) const {
  Found best;
  for (const size_t rise : kRises) {
    if (values_.size() < in_row + rise + kFewestBefore || best.strength >= alarm) break;  // as short a rise as will do
    const size_t end = values_.size() - in_row - rise;
    size_t window = 0;
    for (const size_t wanted : kWindows) {
      if (std::min(wanted, end) == window) break;
      window = std::min(wanted, end);
      const bool positive =
          *std::min_element(values_.begin() + static_cast<std::ptrdiff_t>(end - window), values_.end()) > 0;
      const std::optional<Way> way =
          positive ? WayOut(end - window, end, in_row) : WayFromMiddle(end - window, end, in_row);
      if (!way) {
        if (window == kFewestBefore) break;
        continue;
      }
      const double independent = std::clamp(static_cast<double>(in_row) * way->worth, 1.0,
                                            std::min<double>(static_cast<double>(in_row), kMostIndependent));
      const double strength = OfRank(static_cast<double>(window) * way->worth, static_cast<double>(in_row)) +
                              independent * way->gap / way->scale / std::log(10);
      if (strength > best.strength) best = {std::min(strength, kMostOfLeap), end};
    }
  }
  return best;
}

// Where it began: the first of those on end that stand clearly above all of the 26 before the rise.
size_t LossWatch::FirstAbove(size_t end, size_t in_row) const {
  const double most = LargestOf(std::span(values_).subspan(end - kFewestBefore, kFewestBefore));
  size_t first = values_.size() - in_row;
  while (first > end && values_[first - 1] > most + kOnTheWay * std::fabs(most)) --first;
  return first;
}

LossLeap LossWatch::LeapAt(size_t first, size_t end) const {
  return {steps_[first], values_.size() - first, MedianOf(std::span(values_).subspan(end - kNear, kNear)),
          MedianOf(std::span(values_).subspan(first))};
}

void LossWatch::KeepLargest() {
  const size_t end = values_.size() - 1;
  const auto before = std::span(values_).subspan(end - kFewestBefore, kFewestBefore);
  const double most = LargestOf(before), value = values_.back();
  if (*std::min_element(before.begin(), before.end()) <= 0 || value <= most * largest_gap_) return;
  if (value < kLeastShown * MedianOf(before.last(kNear))) return;
  largest_gap_ = value / most;
  largest_ = LeapAt(end, end);
}

bool LossWatch::IsBeyondAll() const {
  return count_ <= kJudgeWarmup && low_ > 0 && values_.back() >= kBeyondAll * highest_before_;
}

// A training that has learned much falls far below its first losses: one above these is beyond all, too.
bool LossWatch::IsAboveFirst() const {
  if (count_ > kJudgeWarmup || !(low_ > 0) || values_.size() <= kFewestBefore) return false;
  const double most = LargestOf(std::span(values_).last(kFewestBefore + 1).first(kFewestBefore));
  return values_.back() >= kAboveFirst * highest_before_ && values_.back() >= kBeyondAll * most;
}

std::optional<LossLeap> LossWatch::Open(double alarm) const {
  for (size_t in_row = kInRow - 1; in_row > 0; --in_row) {
    const Found found = Strongest(in_row, alarm);
    if (found.strength < alarm) continue;
    return LeapAt(FirstAbove(found.end, in_row), found.end);
  }
  return std::nullopt;
}

bool LossWatch::IsUsual(const Change& change) const {
  if (!(low_ > 0) || values_.size() < kFewestBefore) return false;
  if (change.detector == Detector::kSpike) return change.after < kLeastOfOne * change.before;
  if (change.detector != Detector::kLevel && change.detector != Detector::kTrend) return false;
  const double times = change.after / change.before;
  return (times > 0.5 && times < 2) || (times < 1 && IsLearning(change));
}

bool LossWatch::IsLearning(const Change& change) const {
  const std::span<const double> all(values_);
  double furthest = 0;  // from four losses to the four after them
  for (size_t i = kInRow; i + kInRow <= all.size(); ++i) {
    if (steps_[i] < change.onset - kAboutOnset) continue;
    const double fall = MedianOf(all.subspan(i - kInRow, kInRow)) / LargestOf(all.subspan(i, kInRow));
    furthest = std::max(furthest, std::log(fall));
  }
  return furthest < std::log(change.before / MedianOf(all.last(3))) / 2;
}

bool LossWatch::StandsOut() const {
  if (values_.size() <= kFewestBefore) return true;
  const auto before = std::span(values_).last(kFewestBefore + 1).first(kFewestBefore);
  return values_.back() > LargestOf(before);
}

bool LossWatch::HasJudged(int64_t step) const {
  return judged_from_ && step >= *judged_from_ && values_.size() >= kInRow && step <= steps_[steps_.size() - kInRow];
}

void LossWatch::Restart(size_t kept) {
  values_.erase(values_.begin(), values_.end() - static_cast<std::ptrdiff_t>(kept));
  steps_.erase(steps_.begin(), steps_.end() - static_cast<std::ptrdiff_t>(kept));
}

std::optional<Change> LossWatch::Add(int64_t step, double value, double alarm) {
  ++count_;
  if (!std::isfinite(value)) {
    if (std::exchange(told_not_finite_, true)) return std::nullopt;
    return Change{Detector::kNotFinite, step, kExactStrength, values_.empty() ? 0 : values_.back(), value};
  }
  highest_before_ = finite_ == 0 ? value : high_;
  low_ = finite_ == 0 ? value : std::min(low_, value);
  high_ = std::max(highest_before_, value);
  ++finite_;
  if (first_.size() < kFirst) first_.push_back(std::fabs(value));
  if (values_.size() == kMostKept) values_.erase(values_.begin()), steps_.erase(steps_.begin());
  values_.push_back(value);
  steps_.push_back(step);
  const std::optional<Change> climb = climb_.Add(step, value, alarm);
  if (values_.size() <= kFewestBefore) return std::nullopt;
  if (!judged_from_) judged_from_ = step;
  if (const Found found = Strongest(kInRow, alarm); found.strength >= alarm) {
    const LossLeap leap = LeapAt(FirstAbove(found.end, kInRow), found.end);
    Restart(kInRow);
    return Change{Detector::kLeap, leap.step, found.strength, leap.before, leap.after};
  }
  if (const Found found = IsBeyondAll() ? Strongest(1, alarm) : Found{}; found.strength >= alarm) {
    const LossLeap leap = LeapAt(values_.size() - 1, found.end);
    return Change{Detector::kSpike, step, found.strength, leap.before, leap.after};
  }
  // Alone it is when the next one is back; else it may be the first of a leap.
  const std::optional<Change> alone = std::exchange(alone_, std::nullopt);
  if (const Found found = IsAboveFirst() ? Strongest(1, alarm) : Found{}; found.strength >= alarm) {
    const LossLeap leap = LeapAt(values_.size() - 1, found.end);
    alone_ = Change{Detector::kSpike, step, found.strength, leap.before, leap.after};
  }
  if (alone && value < alone->after / 2) return alone;
  KeepLargest();
  return climb;
}

}  // namespace msprobe
