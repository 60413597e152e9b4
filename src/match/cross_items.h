// Which item of an op is which of its partner in the other framework, where they are not at the same places.
#pragma once

#include <vector>

#include "dump/reader.h"
#include "match/match_plan.h"

namespace msprobe {

/// Of a backward op that is only a part of what its partner computes: what both are given is one gradient.
OpLinks LinksOfPart(uint32_t golden);

/// Backward ops of a product and of the bias that is added to it on one side, and of both together on the other.
struct BiasGradient {
  uint32_t target = kNoOp, golden = kNoOp;  // of the product, or of both together
  uint32_t bias = kNoOp;
  bool of_golden = false;  // the bias is the golden run's
};

/// Ops that `plan` pairs and that list their tensors in another order: tensors of equal shape stand against each other
/// where that pairs more of them than their places do (embedding(ids, weight) and gather(weight, ids, axis); gradients
/// in the order in which they arrived).
Status LinkByShape(const DumpFile& target, const DumpFile& golden, const std::vector<BiasGradient>& biases,
                   MatchPlan* plan);

}  // namespace msprobe
