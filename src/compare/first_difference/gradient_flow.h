// Where only one run keeps a tensor in the graph of gradients.
#pragma once

#include "compare/describe/differences.h"
#include "compare/first_difference/walk_types.h"

namespace msprobe {

/// Of two runs of which only one has backward calls of an op that both call: the first tensor in the forward pass that
/// requires gradients in one run only. kNone where all that is recorded agrees in that, where both have the same
/// backward calls, and where something in front of the backward pass differs by itself. `answer_at` as in WalkResult.
StatusOr<FirstDifference> GradientFlow(const WalkInput& in, const Differences& found, size_t answer_at);

/// Where only one run's step leaves parameters out: the first tensor of the forward pass that requires no gradient in
/// that run, the target or the golden one, and does in the other.
StatusOr<FirstDifference> FrozenWeight(const WalkInput& in, bool target);

}  // namespace msprobe
