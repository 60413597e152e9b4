// The call stack of the training script.
#pragma once

#include "bindings/py.h"
#include "capture/op_name.h"

namespace msprobe {

/// Notes that `name` was called from here.
void RecordStack(const OpName& name);

/// Text for stacks seen since the last call; needs the GIL.
void ResolveStacks();

/// Code that stands in for a hooked function: its frame is left out of stacks.
void MarkTrampoline(PyObject* code);

}  // namespace msprobe
