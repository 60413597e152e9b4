// Fused q, k and v that both sides have as one weight, each in an order of its own.
#pragma once

#include <vector>

#include "weights/checkpoint.h"
#include "weights/weight_diff.h"
#include "weights/weight_pair.h"

namespace msprobe {

/// Marks as copies the fused weights that one side stores group by group, [groups, (q, k, v), size of a head], as
/// GPT-NeoX and Bloom do, and the other one behind the other, as engines do. Returns how many; none where some are
/// equal as they stand, for a model has one order.
size_t TakeOtherQkvOrder(const ModelFacts& facts, const std::vector<WeightPair>& pairs, std::vector<WeightDiff>* diffs);

}  // namespace msprobe
