// Weights that differ at the beginning of a step, where the step before it agrees.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "diagnose/story/story.h"
#include "match/path_plan.h"

namespace msprobe {

struct WrittenBetween {
  int step = -1;               // behind whose end they were written; -1: not known
  bool update_unseen = false;  // its gradients are there, the update of the weights is not
  double update_ratio = 0;     // StoryOrigin::update_ratio
  uint64_t weights = 0;        // that differ
};

/// What was written between two steps of one rank, the first of which agrees. Where only the update of the weights lies
/// between them and was not recorded, it is that; weights that were zero before show how large it is.
StatusOr<WrittenBetween> LookBetween(const FilePair& before, const FilePair& now);

/// Puts it on the first origin, where that is a weight; others that differ likewise are counted and no origins.
void TellBetween(const WrittenBetween& between, std::vector<StoryOrigin>* origins);

}  // namespace msprobe
