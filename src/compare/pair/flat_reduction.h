// Gradients that one run reduces in flat buckets and the other one by one.
#pragma once

#include "compare/pair/dump_pair.h"
#include "compare/pair/module_tree.h"

namespace msprobe {

/// Takes these calls of both runs out of `plan`, and what scales their results in place, where no module makes them and
/// they reduce as many elements; returns how many of the target these are. What takes the gradients in afterwards is
/// compared.
StatusOr<size_t> LeaveOutFlatReductions(const DumpPair& pair, const ModuleTree& target, const ModuleTree& golden,
                                        MatchPlan* plan);

}  // namespace msprobe
