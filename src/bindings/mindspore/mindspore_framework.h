// MindSpore as the framework of a capture.
#pragma once

#include "bindings/python/py.h"

namespace msprobe {

/// False with a Python error. Throws std::runtime_error with what this release lacks.
bool InitMindSpore(PyObject* mindspore);

/// Around the compilation of a graph, which must not see us.
void HideFromGraphCompiler(bool hide);

}  // namespace msprobe
