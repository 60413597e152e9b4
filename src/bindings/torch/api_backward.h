// The backward of a function that was called: the node that made its output tells when its gradients are there.
#pragma once

#include "bindings/python/py.h"
#include "capture/op_filter.h"
#include "capture/op_name.h"

namespace msprobe {

/// Records it under `name`, in this step.
void HookApiBackward(PyObject* output, const OpName& name, Risk risk);

}  // namespace msprobe
