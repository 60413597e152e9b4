// Gradients that two runs reduce in other pieces: by shards of an optimizer's step, or in buckets of other sizes.
#pragma once

#include "compare/pair/dump_pair.h"
#include "compare/pair/module_tree.h"

namespace msprobe {

/// Where only one run reduces gradients into parts and gathers parameters (a distributed optimizer, ZeRO), its step
/// works on other tensors than that of the other run; so it does where both do so in buckets of other sizes. Takes the
/// ops of both steps out of `plan`; returns how many of the target these are.
StatusOr<size_t> LeaveOutDividedStep(const DumpPair& pair, const ModuleTree& target, const ModuleTree& golden,
                                     MatchPlan* plan);

/// The same of what is done to buckets of gradients, where both runs reduce as many elements in buckets of other sizes.
StatusOr<size_t> LeaveOutBuckets(const DumpPair& pair, const ModuleTree& target, const ModuleTree& golden,
                                 MatchPlan* plan);

}  // namespace msprobe
