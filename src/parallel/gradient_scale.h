// Gradients of merged data parallel ranks. Each rank's loss is a mean over its own tokens, so until gradients are
// averaged they are as many times larger as there are ranks, compared with one rank that has all tokens.
#pragma once

#include "graph/tree/builder.h"

namespace msprobe {

/// `ratio` if the gradients of the target's modules are that many times the golden run's throughout, from the first
/// backward call on; 1 otherwise.
StatusOr<double> FindGradientScale(double ratio, const RankGraph& target, const RankGraph& golden);

}  // namespace msprobe
