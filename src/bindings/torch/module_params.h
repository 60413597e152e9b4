// The gradients of a module's own parameters are told by hooks of the parameters themselves.
//
// Such a hook is the tensor's: it stays when the tensor's type, device or memory changes, and makes no accumulator,
// which would keep the shape that a parameter had when it was made (a sharded one has none then). It stands before the
// hooks of others, which may use the gradient up, and before those of the accumulator, where DistributedDataParallel
// divides it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "bindings/backward/param_grads.h"
#include "bindings/python/py.h"

namespace msprobe {

/// What stands at one place of the module's dict of parameters.
struct KnownParam {
  Ref id;                      // of our hook among those of the tensor
  Ref hook;                    // empty: no gradient is wanted
  Ref accumulator;             // only where tensors have no such hooks (PyTorch 2.0)
  PyObject* tensor = nullptr;  // only to be compared
  int64_t impl = 0;            // of the tensor, see module_params.cc
  bool wanted = false;
  bool by_node = false;  // its hook runs with the node that made it: what it gets is not foreseen
};

/// The parameters of one module that are hooked, in the order of its dict.
struct ModuleParams {
  std::vector<KnownParam> known;
  ParamGradsPtr grads = std::make_shared<ParamGrads>();

  /// Hooks those that are new or need a gradient now.
  void Hook(PyObject* module);
  /// Whether Hook() would find something to hook.
  bool Changed(PyObject* module) const;

 private:
  void HookAll(PyObject* params);
  KnownParam HookOne(PyObject* name, PyObject* parameter, size_t slot);
};

/// A module whose calls are not recorded, as the root of a model: others use its parameters. Held weakly; false with an
/// error.
bool AddParameterOwner(PyObject* module, const char* base);
void HookParameterOwners();

}  // namespace msprobe
