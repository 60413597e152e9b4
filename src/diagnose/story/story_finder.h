// Collects what the pairs of a comparison say, rank by rank and step by step, until the story of the run is known.
#pragma once

#include <vector>

#include "diagnose/divergence.h"
#include "diagnose/story/story.h"
#include "diagnose/story/written_between.h"

namespace msprobe {

class StoryFinder {
 public:
  /// The ranks of a step one after another, and the steps in their order.
  Status Add(RankFindings rank);
  /// After the last pair of all.
  Status End();
  /// How the first origins are wrong; after End(). Reads the values of the items at which they begin.
  void Explain();
  /// Of the first step that differs. A replay may be added to its origins.
  Divergence& divergence() { return divergence_; }
  /// After End().
  Story Tell() const;

 private:
  Status EndStep();
  /// Copies of a parameter that a step parted are the cause of what differs behind it.
  Status BlameParted(const std::vector<FilePair>& files);
  void JudgeEnds(const std::vector<FilePair>& files);
  void AddLater(const RankFindings& rank);
  /// Whether a weight was written between the step before, which agrees, and the one that differs.
  Status JudgeBetween();
  /// A parameter that differs where the steps before it only rounded: the optimizer enlarged that.
  Status ExcuseOptimizer(RankFindings* rank);

  SharedNames names_;
  std::vector<RankFindings> ranks_;                         // of the step at hand
  std::vector<FilePair> files_, step_before_, first_step_;  // of the step that differs, and of those that do not
  bool rounded_before_ = false;                             // a step before this one differs, by no more than round-off
  std::vector<Carrier> excused_;  // parameters that the optimizer of this step's past explains
  Divergence divergence_;
  bool exact_before_ = false;  // in the steps before the one that differs all is bit-equal
  WrittenBetween between_;     // where the first origin is a weight that was written there
  Divergence unproven_;        // of the step before: ops that one run has more, and nothing behind them
  std::string harmless_end_;   // the first of such ops that made no difference
  RulerCounts ops_;
  uint64_t target_only_ = 0, golden_only_ = 0;
  std::vector<RecordingGap> gaps_;
  uint64_t unseen_ = 0, unread_ = 0;
  std::string first_unread_;
  std::vector<std::string> target_modules_, golden_modules_;  // of the first rank that has such
  uint64_t unrecorded_ = 0;                                   // of one rank and step
  std::string first_unrecorded_;
  uint64_t other_forms_ = 0;  // as well
  std::string first_other_form_;
  uint64_t divided_ = 0;
};

}  // namespace msprobe
