#include "judge/series_watch.h"

#include <algorithm>
#include <cmath>

namespace msprobe {
namespace {

constexpr size_t kHistory = 400;                 // of a statistic
constexpr size_t kRefit = 16, kRefitLater = 50;  // steps until its tail is fitted again
constexpr size_t kQuietAfter = 48;               // steps of a series after a change
constexpr double kStronger = 1;
constexpr size_t kSpikeBase = 8, kLevelBase = 32;
constexpr std::array<size_t, 2> kLevelWindows{8, 24};
constexpr size_t kTrendSpan = 96, kTrendWindow = 24;
constexpr size_t kNoiseWindow = 24, kNoiseBase = 72;
constexpr size_t kShortestRun = 4;       // of equal values; of zeros twice that
constexpr size_t kMovedLongEnough = 50;  // steps with another value, after which it is one that changes
constexpr double kRunFactor = 4;
enum : size_t { kOfSpike, kOfShortLevel, kOfLongLevel, kOfTrend, kOfNoise };
// How much overlapping windows reduce what a strength says: their statistics change slowly, so the tail that they show
// is that of fewer values.
constexpr std::array<double, 5> kTrust{1, 1, 1, 0.8, 0.7};

double Median(double* values, size_t count) {
  double* middle = values + count / 2;
  std::nth_element(values, middle, values + count);
  return *middle;
}

}  // namespace

const char* DetectorName(Detector detector) {
  switch (detector) {
    case Detector::kNotFinite: return "not_finite";
    case Detector::kMissing: return "missing";
    case Detector::kZeros: return "zeros";
    case Detector::kStuck: return "stuck";
    case Detector::kLeap: return "leap";
    case Detector::kSpike: return "spike";
    case Detector::kLevel: return "level";
    case Detector::kTrend: return "trend";
    case Detector::kVariance: return "variance";
    case Detector::kJump: return "jump";
    case Detector::kOutside: return "changed_outside";
    case Detector::kReplicas: return "replicas_differ";
    case Detector::kReduction: return "gradient_changed";
    case Detector::kClip: return "above_clip";
    case Detector::kPinned: return "clipped_lower";
    case Detector::kReset: return "moments_reset";
  }
  return "";
}

bool IsExact(Detector detector) {
  return detector == Detector::kNotFinite || detector == Detector::kMissing || detector >= Detector::kOutside;
}

void SeriesWatch::Statistic::Push(double magnitude, size_t most) {
  if (history.size() < most) {
    history.push_back(magnitude);
  } else {
    history[at] = magnitude;
    at = (at + 1) % most;
  }
  if (++since_fit < (history.size() < most ? kRefit : kRefitLater) && tail.known()) return;
  since_fit = 0;
  std::array<double, kHistory> sorted;
  std::copy(history.begin(), history.end(), sorted.begin());
  tail.Fit({sorted.data(), history.size()});
}

double SeriesWatch::Transform(double value) const {
  return scale_ == SeriesScale::kLogarithm ? std::log(std::max(std::fabs(value), 1e-30)) : value;
}

double SeriesWatch::Back(double y) const { return scale_ == SeriesScale::kLogarithm ? std::exp(y) : y; }

double SeriesWatch::MedianOf(size_t first, size_t count) const {
  std::array<double, kRing> part{};
  for (size_t i = 0; i < count; ++i) part[i] = Recent(first + i);
  return Median(part.data(), count);
}

double SeriesWatch::MeanOf(size_t first, size_t count) const {
  double sum = 0;
  for (size_t i = 0; i < count; ++i) sum += Recent(first + i);
  return sum / static_cast<double>(count);
}

// Equal values and zeros, by the longest run before.
std::optional<Change> SeriesWatch::Runs(int64_t step, double value) {
  std::optional<Change> change;
  const bool equal = count_ > 0 && value == last_, zero = value == 0;
  if (!equal) {
    if (!told_equal_) longest_equal_ = std::max(longest_equal_, equal_run_);
    equal_run_ = 0;
    told_equal_ = false;
    equal_since_ = step;
    if (count_ > 0) ++moved_;
  } else {
    ++equal_run_;
  }
  if (!zero) {
    if (!told_zeros_) longest_zeros_ = std::max(longest_zeros_, zero_run_);
    zero_run_ = 0;
    told_zeros_ = false;
  } else if (++zero_run_ == 1) {
    zero_since_ = step;
  }
  if (!IsWarm() || scale_ == SeriesScale::kLinear) return change;  // a difference may be zero
  const auto limit = [](size_t longest, size_t least) {
    return least + static_cast<size_t>(kRunFactor * static_cast<double>(longest));
  };
  if (!told_zeros_ && zero_run_ >= limit(longest_zeros_, 2 * kShortestRun)) {
    told_zeros_ = told_equal_ = true;
    change = {Detector::kZeros, zero_since_, kExactStrength / 2, Back(MedianOf(0, kLevelBase)), 0};
  } else if (repeats_ && !zero && !told_equal_ && moved_ >= kMovedLongEnough &&
             equal_run_ >= limit(longest_equal_, kShortestRun)) {
    told_equal_ = true;
    change = {Detector::kStuck, equal_since_, kExactStrength / 2, value, value};
  }
  return change;
}

Change SeriesWatch::MakeLevel(size_t window, double base, double strength) const {
  const double level = MeanOf(0, window);
  const double sign = level > base ? 1 : -1;
  double sum = 0, best = 0;
  size_t began = window - 1;
  for (size_t i = 0; i < window + kSpikeBase; ++i) {
    sum += sign * (Recent(i) - (base + level) / 2);
    if (sum > best) best = sum, began = i;
  }
  return {Detector::kLevel, steps_[(end_ - 1 - began) % kRing], strength, Back(base), Back(level)};
}

std::optional<Change> SeriesWatch::Levels(int64_t step, double least) {
  std::optional<Change> change;
  const auto consider = [&](size_t which, double size, auto make) {
    Statistic& statistic = statistics_[which];
    const double magnitude = std::fabs(size);
    const double strength = kTrust[which] * statistic.tail.Strength(magnitude);
    const bool large = magnitude >= least_change_ || which == kOfNoise;
    const double floor = quiet_ == 0 ? least : std::max(least, told_strength_ + kStronger);
    const bool fine = size < 0 && ((which == kOfSpike && !dips_) || (which == kOfNoise && !calm_));
    if (IsWarm() && large && !fine && strength >= floor && (!change || strength > change->strength)) {
      change = make(strength);
    }
    // What is far out would hide the next one.
    if (strength < 6 || quiet_ > 0) statistic.Push(magnitude, kHistory);
  };
  if (count_ > kSpikeBase) {
    const double base = MedianOf(1, kSpikeBase);
    consider(kOfSpike, Recent(0) - base, [&](double s) {
      return Change{Detector::kSpike, step, s, Back(base), Back(Recent(0))};
    });
  }
  for (size_t i = 0; i < kLevelWindows.size(); ++i) {
    const size_t window = kLevelWindows[i];
    if (count_ < window + kLevelBase) break;
    const double base = MedianOf(window, kLevelBase);
    consider(kOfShortLevel + i, MeanOf(0, window) - base, [&](double s) { return MakeLevel(window, base, s); });
  }
  if (count_ >= kTrendSpan + kTrendWindow) {
    const double base = MeanOf(kTrendSpan, kTrendWindow);
    consider(kOfTrend, MeanOf(0, kTrendWindow) - base, [&](double s) {
      Change made = MakeLevel(kTrendWindow, base, s);
      made.detector = Detector::kTrend;
      return made;
    });
  }
  if (noise_ && count_ > kNoiseWindow + kNoiseBase + 1) {
    const auto noise = [&](size_t first, size_t count) {
      std::array<double, kRing> part{};
      for (size_t j = 0; j < count; ++j) part[j] = std::fabs(Recent(first + j) - Recent(first + j + 1));
      return Median(part.data(), count);
    };
    const double now = noise(0, kNoiseWindow), base = noise(kNoiseWindow, kNoiseBase);
    if (now > 0 && base > 0) {
      consider(kOfNoise, std::log(now / base), [&](double s) {
        return Change{Detector::kVariance, steps_[(end_ - kNoiseWindow) % kRing], s, base, now};
      });
    }
  }
  return change;
}

std::optional<Change> SeriesWatch::Add(int64_t step, double value, double least) {
  if (!std::isfinite(value)) {
    const bool fresh = finite_ >= kShortestRun && !told_not_finite_;
    told_not_finite_ = true;
    if (!fresh) return std::nullopt;
    return Change{Detector::kNotFinite, step, kExactStrength, count_ > 0 ? Back(MedianOf(0, 1)) : 0, value};
  }
  ++finite_;
  std::optional<Change> change = Runs(step, value);
  last_ = value;
  if (value == 0 && scale_ == SeriesScale::kLogarithm) return change;  // it has no place on this scale
  ring_[end_ % kRing] = Transform(value);
  steps_[end_ % kRing] = step;
  ++end_;
  ++count_;
  const std::optional<Change> level = Levels(step, least);
  if (quiet_ > 0) --quiet_;
  if (level && (!change || level->strength > change->strength)) change = level;
  if (level) {
    quiet_ = kQuietAfter;
    told_strength_ = level->strength;
  }
  return change;
}

}  // namespace msprobe
