// Calls of modules that have begun and not ended, and the hooks of their backward pass.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bindings/python/name_counts.h"
#include "bindings/torch/module_backward.h"
#include "bindings/torch/module_params.h"

namespace msprobe {

struct ModuleSite {
  const std::string* base = nullptr;
  NameCounts* counts = nullptr;
  bool legacy_backward_hook = false;
  ModuleParams params;
};

// The hooks at the single outputs of modules, by the sequence number of the node: modules that return the same tensor
// share one, so that the outermost and the last come first.
using OutputHooks = std::vector<std::pair<uint64_t, Ref>>;

// A call of a module that has begun and not ended.
struct OpenCall {
  std::shared_ptr<ModuleSite> site;
  OpName name;
  uint64_t generation;
  int depth;  // of the interpreter's stack
  Record* record = nullptr;
  ModuleBackwardPtr backward;
  OutputHooks output_hooks;  // of the calls that ended inside this one
};

/// Of this thread, innermost last.
std::vector<OpenCall>& OpenCalls();

/// Notes the inputs that gradients will leave the module by.
void SetInputs(OpenCall* call, PyObject* args);
/// Hooks the edges that gradients come in and go out by. What stands in for the output; null: it stays as it is.
PyObject* HookBackward(OpenCall* call, PyObject* output);

}  // namespace msprobe
