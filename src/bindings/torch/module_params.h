// The gradients of a module's own parameters are told by their accumulators.
#pragma once

#include <memory>
#include <vector>

#include "bindings/backward/param_grads.h"
#include "bindings/python/py.h"

namespace msprobe {

struct KnownParam {
  Ref parameter;
  Ref accumulator;  // AccumulateGrad; nobody else keeps it between two backwards, but for FSDP2
  Ref hook;
  Ref handle;  // that takes the hook away
};

/// The parameters of one module that are hooked, in the order of its dict.
struct ModuleParams {
  std::vector<KnownParam> known;
  ParamGradsPtr grads = std::make_shared<ParamGrads>();

  /// Hooks those that are new or need a gradient now, and lets go of the others.
  void Hook(PyObject* module);
  /// Whether Hook() would find something to hook.
  bool Changed(PyObject* module) const;
  /// Parameters that were exchanged meanwhile are not kept alive.
  void LetGoOfOld(PyObject* module);

 private:
  void HookAll(PyObject* params);
  KnownParam HookOne(PyObject* name, PyObject* parameter);
  void LetGo(KnownParam* k);
};

}  // namespace msprobe
