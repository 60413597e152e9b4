// What is known of a step when all of its ranks are compared: who diverged first, and the analysis of -da.
#pragma once

#include <msprobe/compare.h>

#include "diagnose/story/story_finder.h"
#include "report/rows/ops_json.h"
#include "report/summary.h"

namespace msprobe {

/// What one pair says about its step.
struct PairFindings {
  RankFindings divergence;
  RankSuspects suspects;  // with -da
};

/// Takes the pairs in their order: steps one after another.
class StepWatch {
 public:
  StepWatch(const CompareSettings& settings, const Mapping& mapping, CompareReport* report)
      : settings_(settings), mapping_(mapping), report_(report) {}
  Status Add(PairFindings findings);
  /// After the last pair: the report has the story then.
  Status End();

 private:
  Status EndStep();
  Status Analyze();
  const CompareSettings& settings_;
  const Mapping& mapping_;
  CompareReport* report_;
  StoryFinder finder_;
  int step_ = -1;
  std::vector<RankSuspects> suspects_;
};

}  // namespace msprobe
