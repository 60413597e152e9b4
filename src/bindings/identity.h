// Nodes of our own in the autograd graph, at the inputs and outputs of modules.
#pragma once

#include <vector>

#include "bindings/py.h"

namespace msprobe {

/// Tensors that require grad in nested lists, tuples and dicts, in order; borrowed.
void CollectGradTensors(PyObject* value, std::vector<PyObject*>* out, int depth = 0);

/// `args` with `tensors` seen through nodes after which `hook` runs: a view of a single tensor, BackwardHookFunction of
/// several. New reference, or null with a Python error.
PyObject* ThroughIdentity(PyObject* args, const std::vector<PyObject*>& tensors, PyObject* hook);
PyObject* ThroughBackwardFunction(PyObject* value, const std::vector<PyObject*>& tensors, PyObject* hook);

}  // namespace msprobe
