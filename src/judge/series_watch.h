// One series, value after value: whether and how it changes. What is told depends only on values that have come.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "judge/tail.h"

namespace msprobe {

enum class Detector : uint8_t {
  kNotFinite,  ///< NaN or infinity in a series that had none
  kMissing,    ///< a row that came at each step stops coming
  kZeros,      ///< zero for longer than ever
  kStuck,      ///< the same value for longer than ever
  kLeap,       ///< the loss, from one step to the next, and it stays
  kSpike,      ///< one value far from the eight before it
  kLevel,      ///< the mean of some values far from those before them
  kTrend,      ///< it drifts faster than ever
  kVariance,   ///< its noise is another
  kJump,       ///< what a script sets is another from one step to the next
  // Relations that held at every step so far:
  kOutside,    ///< parameters change between two steps of the optimizer
  kReplicas,   ///< replicas on ranks differ
  kReduction,  ///< gradients change between backward pass and optimizer by more than a common factor
  kClip,       ///< the norm of all gradients is above the limit that clipping held
  kPinned,     ///< clipping holds the norm of all gradients at a limit below all there was
  kReset,      ///< a running mean falls further than its decay can take it
};
/// The word of texts and JSON.
const char* DetectorName(Detector detector);
/// Whether it needs no threshold: something that always held does not hold.
bool IsExact(Detector detector);
inline constexpr double kExactStrength = 99;

struct Change {
  Detector detector = Detector::kSpike;
  int64_t onset = 0;             // the step where it began, as far as that can be told
  double strength = 0;           // -log10 of the probability in a healthy series; kExactStrength for what is exact
  double before = 0, after = 0;  // typical values, in the units of the series
};

/// Which values a series can have decides the scale on which its changes are measured.
enum class SeriesScale : uint8_t { kLogarithm, kLinear };

/// Values that it takes before it says anything.
inline constexpr size_t kJudgeWarmup = 200;
/// What is too small to be told, on the logarithm; of extremes, which leap; of moments, which leap a little whenever
/// one gradient is large: the gradient is judged itself.
inline constexpr double kLeastChange = 0.05, kLeastLeap = 0.7, kLeastOfMoments = 0.2;

class SeriesWatch {
 public:
  /// `repeats`: whether equal values one after another mean something.
  /// `least_change`: what is smaller, on the logarithm, is not told.
  SeriesWatch(SeriesScale scale, bool repeats, double least_change = kLeastChange)
      : scale_(scale), repeats_(repeats), least_change_(least_change) {}

  /// Changes as strong as `least` (-log10 of the probability) or stronger: the strongest of this step.
  std::optional<Change> Add(int64_t step, double value, double least);
  /// Of values that are sums over many steps, such as parameters and moments, the noise from step to step says nothing;
  /// nor that of extremes.
  void IgnoreNoise() { noise_ = false; }
  /// One value that is lower than the others is no fault of a loss or of gradients, as a batch may be easy, nor of a
  /// largest value.
  void IgnoreDips() { dips_ = false; }
  /// Less noise than before is no fault of how far a rank is from the middle of all: it is the middle for a while.
  void IgnoreCalm() { calm_ = false; }
  size_t count() const { return count_; }
  bool IsWarm() const { return count_ >= kJudgeWarmup; }

 private:
  // A statistic of the series, and its own history.
  struct Statistic {
    std::vector<double> history;
    size_t at = 0, since_fit = 0;
    Tail tail;
    void Push(double magnitude, size_t most);
  };
  double Transform(double value) const;
  double Back(double y) const;
  double Recent(size_t i) const { return ring_[(end_ - 1 - i) % kRing]; }  // 0: the last
  double MedianOf(size_t first, size_t count) const;
  double MeanOf(size_t first, size_t count) const;
  std::optional<Change> Runs(int64_t step, double value);
  std::optional<Change> Levels(int64_t step, double least);
  Change MakeLevel(size_t window, double base, double strength) const;

  static constexpr size_t kRing = 256, kStatistics = 5;
  SeriesScale scale_;
  bool repeats_, noise_ = true, dips_ = true, calm_ = true;
  double least_change_;
  size_t count_ = 0, end_ = 0;
  std::array<double, kRing> ring_{};
  std::array<int64_t, kRing> steps_{};
  std::array<Statistic, kStatistics> statistics_;
  double last_ = 0;
  size_t equal_run_ = 0, longest_equal_ = 0, zero_run_ = 0, longest_zeros_ = 0, finite_ = 0;
  size_t moved_ = 0;  // values that differ from the one before: a constant has none, and cannot stop
  int64_t equal_since_ = 0, zero_since_ = 0;
  size_t quiet_ = 0;  // steps after a change in which only a stronger one is told
  double told_strength_ = 0;
  bool told_equal_ = false, told_zeros_ = false, told_not_finite_ = false;
};

}  // namespace msprobe
