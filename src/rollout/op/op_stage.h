// The stage "op" of `msprobe rollout`: the first operation of which both sides were given the same and made something
// else.
#pragma once

#include "base/status.h"
#include "rollout/evidence.h"
#include "rollout/stage.h"

namespace msprobe {

/// From dumps alone. Not seen where they hold no tensors, or no tokens that both sides computed.
StatusOr<RolloutStageResult> OpStage(const SideEvidence& train, const SideEvidence& rollout);

}  // namespace msprobe
