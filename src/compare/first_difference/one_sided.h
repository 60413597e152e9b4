// Modules with parameters that only one of two runs calls.
#pragma once

#include <string_view>
#include <vector>

#include "compare/pair/dump_pair.h"
#include "compare/pair/module_tree.h"

namespace msprobe {

/// A module that the other run never calls, under whatever number, and that holds parameters, itself or below it.
struct OneSidedModule {
  bool golden = false;  // the golden run has it
  uint32_t op = 0;      // its first forward call: the outermost such module around the parameters
  std::string_view name;
};

/// In the order of execution of each run, those of the target first. None where the two runs are of other modules
/// altogether, or where other names belong together by a mapping.
StatusOr<std::vector<OneSidedModule>> OneSidedModules(const DumpPair& pair, const MatchPlan& plan,
                                                      const ModuleTree& target, const ModuleTree& golden);

}  // namespace msprobe
