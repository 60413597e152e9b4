// Told by autograd when the gradient of a parameter is there.
#pragma once

#include "bindings/backward/param_grads.h"

namespace msprobe {

/// Runs when the gradient of `parameter` is there.
PyObject* NewParamHook(ParamGradsPtr grads, PyObject* parameter, const char* name);
/// The node that runs right before that.
void SetParamHookSequence(PyObject* hook, uint64_t sequence);

}  // namespace msprobe
