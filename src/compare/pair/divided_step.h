// Steps of an optimizer that only one run divides over its ranks.
#pragma once

#include "compare/pair/dump_pair.h"
#include "compare/pair/module_tree.h"

namespace msprobe {

/// Where only one run reduces gradients into parts and gathers parameters (a distributed optimizer, ZeRO), its step
/// works on other tensors than that of the other run. Takes the ops of both steps out of `plan`; returns how many of
/// the target these are.
size_t LeaveOutDividedStep(const DumpPair& pair, const ModuleTree& target, const ModuleTree& golden, MatchPlan* plan);

}  // namespace msprobe
