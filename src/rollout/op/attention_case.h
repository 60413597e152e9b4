// What attention of both sides was given for one sequence.
#pragma once

#include <optional>
#include <vector>

#include "rollout/op/explain_op.h"

namespace msprobe {

/// Of the sequence of which most is recorded; nothing where too little is. Keys that the engine took from a cache are
/// the trainer's.
std::optional<AttentionCase> AttentionCaseOf(const ModelLine& train, const ModelLine& rollout, const TokenPairs& pairs,
                                             const std::vector<PairedToken>& tokens, int64_t layer, double tolerance);

}  // namespace msprobe
