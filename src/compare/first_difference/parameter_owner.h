// To which parameter an op of the optimizer belongs.
#pragma once

#include <string>

#include "compare/pair/dump_pair.h"
#include "compare/pair/module_tree.h"

namespace msprobe {

/// "blocks.0.mlp.up.weight" for an op behind the backward pass that no module calls; "" where the dump does not show
/// it: without modules, without a loop over the parameters, or where several parameters look the same.
StatusOr<std::string> ParameterOwner(const DumpFile& dump, size_t op);

}  // namespace msprobe
