// The call stack of the training script.
#pragma once

#include "bindings/python/py.h"
#include "capture/op_name.h"
#include "capture/record.h"

namespace msprobe {

/// Notes that `name` was called from here; for a record that may be dropped, when it is kept.
void RecordStack(const OpName& name, Record* record = nullptr);

/// Code that stands in for a hooked function: its frame is left out of stacks.
void MarkTrampoline(PyObject* code);

}  // namespace msprobe
