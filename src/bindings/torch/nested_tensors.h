// Tensors in the nested arguments and results of modules.
#pragma once

#include <vector>

#include "bindings/python/py.h"

namespace msprobe {

/// Tensors that require grad in nested lists, tuples and dicts, in order; borrowed.
void CollectGradTensors(PyObject* value, std::vector<PyObject*>* out, int depth = 0);

}  // namespace msprobe
