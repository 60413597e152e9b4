// Pairs of ops by their order, where one run has more ops than the other.
#pragma once

#include "compare/pair/dump_pair.h"
#include "compare/pair/module_tree.h"

namespace msprobe {

/// Where one run has more ops than the other, the call numbers behind it shift, and names pair unequal calls. This
/// pairs ops by their order instead, within the same module and with tensors of the same shapes. Empty when names
/// do as well, or when a mapping chose the pairs.
StatusOr<MatchPlan> AlignByOrder(const DumpPair& pair, const ModuleTree& target, const ModuleTree& golden);

}  // namespace msprobe
