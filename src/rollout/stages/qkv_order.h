// Fused q, k and v that both sides have as one weight, each in an order of its own.
#pragma once

#include <cstdint>
#include <vector>

#include "base/message.h"
#include "base/status.h"
#include "weights/checkpoint.h"
#include "weights/weight_diff.h"
#include "weights/weight_pair.h"

namespace msprobe {

/// One side may store fused weights group by group, [groups, (q, k, v), size of a head], as GPT-NeoX and Bloom do, and
/// the other one behind the other, as engines do. Where that makes copies of some, the rows of all such weights of the
/// engine, those that differ, too, are brought into the trainer's order and compared again. Returns how many; none
/// where some are equal as they stand, for a model has one order.
StatusOr<size_t> TakeOtherQkvOrder(const Checkpoint& a, const Checkpoint& b, std::vector<WeightPair>* pairs,
                                   std::vector<WeightDiff>* diffs);

struct HeadsText {
  Message text;      // "heads 2 to 3 of q, k, v"; empty where there are none
  bool one = false;  // a single head
};
/// What these rows of the trainer's fused weight are; nothing where they are no whole heads.
HeadsText HeadsOfRows(const ModelFacts& facts, const WeightTensor& fused, const std::vector<int64_t>& rows);

}  // namespace msprobe
