// The call of a module (a Cell) as it is recorded, whatever the framework.
#pragma once

#include "bindings/python/py.h"
#include "capture/op_name.h"
#include "capture/record.h"

namespace msprobe {

/// It becomes the parent of what runs inside, and opens ranges of the scope.
void BeginParent(const OpName& name);
void EndParent(const OpName& name);

/// After BeginParent(), before the forward: the record with the inputs; null when it is not recorded. `in_place`: it
/// may write into its arguments.
Record* BeginModuleRecord(const OpName& name, PyObject* args, PyObject* kwargs, bool in_place);

/// The parameters of a dict that are not None.
void RecordParameterDict(Record* record, PyObject* parameters);

/// How deep the interpreter is in its own calls.
int InterpreterDepth();

}  // namespace msprobe
