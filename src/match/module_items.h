// Which item of a module is which of its partner in another implementation of the model.
#pragma once

#include "dump/reader.h"
#include "match/match_plan.h"

namespace msprobe {

/// Writes the links of all pairs of modules in `plan` that have none yet. Signatures differ, so places say little:
/// tensors with as many elements stand against each other, by name, in order, or, where one side has more of them, by
/// what they hold; integers only where they hold the same or have one name. What is left over, and all that is no
/// tensor, has no partner. Results of modules without parameters count only where both give as many tensors: one gives
/// angles, the other cosine and sine.
Status LinkModuleItems(const DumpFile& target, const DumpFile& golden, MatchPlan* plan);

}  // namespace msprobe
