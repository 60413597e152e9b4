// The stages of `msprobe rollout`, each from its own evidence alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rollout/evidence.h"
#include "rollout/gap.h"
#include "rollout/stage.h"

namespace msprobe {

RolloutStageResult TokenStage(const SideEvidence& train, const SideEvidence& rollout, const RequestPairs& pairs);

struct WeightQuestion {
  std::vector<SideWeights> train, rollout, history;
  int64_t allowed_lag = 0;
};
StatusOr<RolloutStageResult> WeightStage(const WeightQuestion& question);

RolloutStageResult SamplingStage(const RequestPairs& pairs);

RolloutStageResult RoutingStage(const RequestPairs& pairs);

/// What is left of the gap when all other stages have spoken.
RolloutStageResult RoundOffStage(const std::vector<RolloutStageResult>& others, const std::vector<TokenGap>& gaps,
                                 const RequestsLeftOut& left_out);

}  // namespace msprobe
