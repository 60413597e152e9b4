// Tensors in the nested arguments and results of modules.
#pragma once

#include <vector>

#include "bindings/python/py.h"

namespace msprobe {

/// Tensors that require grad in nested lists, tuples and dicts, in order; borrowed.
void CollectGradTensors(PyObject* value, std::vector<PyObject*>* out, int depth = 0);

/// `value` with `views` in the place of `tensors`. New reference, or null with a Python error.
PyObject* ReplaceTensors(PyObject* value, const std::vector<PyObject*>& tensors, const std::vector<Ref>& views);

}  // namespace msprobe
