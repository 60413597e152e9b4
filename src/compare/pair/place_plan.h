// Pairs of ops by where they are called, where two runs have the same ops in another order.
#pragma once

#include "compare/pair/dump_pair.h"
#include "compare/pair/module_tree.h"

namespace msprobe {

/// Whether both runs have the same names, modules among them, but not one after the other: another schedule of micro
/// batches.
bool HasOtherOrder(const DumpPair& pair);

/// Of such runs: functions are numbered over all modules, so their names pair unequal calls. Within a module they are
/// paired by its call and their order in it, outside of all modules by their values, then by their order.
StatusOr<MatchPlan> AlignByPlace(const DumpPair& pair, const ModuleTree& target, const ModuleTree& golden);

}  // namespace msprobe
