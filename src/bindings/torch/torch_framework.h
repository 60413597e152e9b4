// PyTorch as a framework that the recorder works with.
#pragma once

#include "bindings/python/py.h"

namespace msprobe {

/// Makes `torch` the framework. Throws std::runtime_error when it lacks what is needed; false: a Python error.
bool InitTorch(PyObject* torch);

}  // namespace msprobe
