// The loss of a run from its first steps on: whether it leaps, and how sure that is for so few values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "judge/loss_climb.h"
#include "judge/series_watch.h"

namespace msprobe {

/// Losses that stand above those before them, which is no alarm: it is too small, too few or too little.
struct LossLeap {
  int64_t step = 0;
  size_t losses = 1;  // that stand so
  double before = 0, after = 0;
};

/// A leap is an alarm where four losses in a row are each at least twice those of at least 26 before. How sure it is:
/// the chance that of so many losses just the last four are the largest, and how far they are out for the noise before.
class LossWatch {
 public:
  static constexpr size_t kFewestBefore = 26, kInRow = 4;

  /// A leap or a climb that is as strong as `alarm` (-log10 of the probability), one loss beyond all there was in the
  /// first kJudgeWarmup (8 times the largest, or 1.5 times it and 8 times the last 26, and back at once), and each
  /// first loss that is NaN or infinite.
  std::optional<Change> Add(int64_t step, double value, double alarm);

  /// Whether a healthy training may do it, however unusual: other data or a restarted schedule (less than twice or
  /// half), one batch that is hard, and a fall with no step of it that makes up half, which is what a training is for.
  /// It is no alarm by itself; what does harm shows in the gradients, too.
  bool IsUsual(const Change& change) const;

  /// Whether the last loss is larger than all of the 26 before it, or nobody knows yet.
  bool StandsOut() const;

  size_t count() const { return count_; }
  /// The first step at which a leap could have begun; none: too few losses.
  std::optional<int64_t> judged_from() const { return judged_from_; }
  /// Whether a leap that began at a step would have been told.
  bool HasJudged(int64_t step) const;
  /// The largest that was no alarm.
  const std::optional<LossLeap>& largest() const { return largest_; }
  /// The last losses, where they would be an alarm if four stood as they do.
  std::optional<LossLeap> Open(double alarm) const;

 private:
  struct Found {
    double strength = 0;
    size_t end = 0;  // of what was before
  };
  struct Way {  // how far the last losses are out
    double gap = 0, scale = 0, worth = 0;
  };
  bool IsLearning(const Change& change) const;
  Found Strongest(size_t in_row, double alarm) const;
  std::optional<Way> WayOut(size_t first, size_t end, size_t in_row) const;
  std::optional<Way> WayFromMiddle(size_t first, size_t end, size_t in_row) const;
  double Lowest(size_t in_row) const;
  LossLeap LeapAt(size_t first, size_t end) const;
  size_t FirstAbove(size_t end, size_t in_row) const;
  bool IsBeyondAll() const;
  bool IsAboveFirst() const;
  void KeepLargest();
  void Restart(size_t kept);

  LossClimb climb_;
  std::vector<double> values_, first_;  // since the last leap, and the first few of all
  std::vector<int64_t> steps_;
  size_t count_ = 0, finite_ = 0;
  bool told_not_finite_ = false;
  double low_ = 0, high_ = 0, highest_before_ = 0;  // of all
  std::optional<int64_t> judged_from_;
  std::optional<LossLeap> largest_;
  std::optional<Change> alone_;  // the last loss, where it is above the first ones
  double largest_gap_ = 0;
};

}  // namespace msprobe
