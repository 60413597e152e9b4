// How one side of a pair is the other, where every element proves it: transposed, exchanged, rounded, zero.
#pragma once

#include <vector>

#include "base/message.h"
#include "weights/checkpoint.h"
#include "weights/weight_diff.h"
#include "weights/weight_pair.h"

namespace msprobe {

/// One for each pair, in their order; empty where nothing is proved, and for pairs that do not differ.
std::vector<Message> CausesOf(const Checkpoint& a, const std::vector<WeightPair>& pairs,
                              const std::vector<WeightDiff>& diffs);

}  // namespace msprobe
