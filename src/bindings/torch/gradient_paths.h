// By which edges gradients come to the calls of modules: found when a backward pass begins, for only then it is known
// who has used a tensor. What a call gets of it depends on who used it: its own nodes (an input), nodes behind it
// (an output), or others, which have nothing to do with the call.
#pragma once

#include "bindings/python/api_spec.h"

namespace msprobe {

/// Runs before the engine of autograd does: walks the graph from what it is given, and hooks the nodes that bring
/// gradients which no single node has.
void BeginPass(const CallArgs& args);

}  // namespace msprobe
