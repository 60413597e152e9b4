// Parts of a run of which nothing was recorded.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "compare/pair/module_tree.h"
#include "dump/reader.h"

namespace msprobe {

/// The modules in which nothing was recorded, and the name of the first.
struct Unrecorded {
  uint64_t modules = 0;
  std::string first;
};

/// Counts the modules of a run that change what goes through them, while no op in them was recorded: what is compiled,
/// and kernels that are called past the functions of the framework. What differs there shows at their outputs. Nothing
/// is counted in dumps of modules only, and where most modules are such: then the dump was asked for a part of the ops.
Status CountUnrecorded(const DumpFile& dump, const ModuleTree& tree, Unrecorded* out);

}  // namespace msprobe
