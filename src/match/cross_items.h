// Which item of an op is which of its partner in the other framework, where they are not at the same places.
#pragma once

#include <unordered_set>

#include "dump/reader.h"
#include "match/match_plan.h"

namespace msprobe {

/// Ops that `plan` pairs and that list their tensors in another order: tensors of equal shape stand against each other
/// where that pairs more of them than their places do (embedding(ids, weight) and gather(weight, ids, axis); gradients
/// in the order in which they arrived). Of the ops in `alike_only`, which are only a part of their partner, nothing
/// else has a partner.
Status LinkByShape(const DumpFile& target, const DumpFile& golden, const std::unordered_set<uint32_t>& alike_only,
                   MatchPlan* plan);

}  // namespace msprobe
