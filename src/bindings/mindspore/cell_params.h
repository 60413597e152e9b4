// The gradients of a Cell's own parameters.
#pragma once

#include <memory>
#include <vector>

#include "bindings/backward/param_grads.h"
#include "bindings/python/py.h"

namespace msprobe {

/// Whether this release compiles hooks of parameters along with graphs that use them (MindSpore 2.7): what it takes are
/// functions of Python.
bool ParamHooksAreCompiled();

class CellParams {
 public:
  ParamGradsPtr grads = std::make_shared<ParamGrads>();

  /// Hooks the parameters that get a gradient. They are told it once in a backward pass, when it is final.
  void Hook(PyObject* cell);
  void LetGo();

 private:
  std::vector<Ref> handles_;
};

}  // namespace msprobe
