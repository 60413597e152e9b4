// Weights of earlier steps, paired with those of an engine.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/message.h"
#include "base/status.h"
#include "rollout/evidence.h"
#include "weights/checkpoint.h"
#include "weights/name_map.h"
#include "weights/weight_diff.h"

namespace msprobe {

/// A checkpoint, or the parameters of a dump.
StatusOr<Checkpoint> OpenWeights(const SideWeights& weights);

/// The same values, or those of the other side rounded to another type.
bool IsCopy(WeightVerdict v);

struct HistoryStep {
  SideWeights source;
  Message name;        // "step 3", or its path
  int64_t behind = 0;  // updates, as far as the names or the order of the checkpoints tell; negative where it is ahead
  Checkpoint checkpoint;
  NameMap map;
  std::vector<WeightDiff> diffs;
  std::unordered_map<std::string, size_t> of_engine;  // label -> pair

  /// Whether the engine's weight has the same bits there.
  bool HasCopy(const std::string& label) const;
};

/// The newest first. Checkpoints of the trainer's own step say nothing of earlier ones and are left out: those that
/// hold what the trainer does of `others`, weights in which it and the engine differ.
StatusOr<std::deque<HistoryStep>> ReadHistory(const std::vector<SideWeights>& earlier, const SideWeights& train,
                                              const std::vector<const WeightPair*>& others, Checkpoint* engine);

}  // namespace msprobe
