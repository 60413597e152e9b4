// Calls of modules that have begun and not ended.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
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

// A tensor that a module keeps beside its parameters.
struct ModuleBuffer {
  const char* data;
  std::string name;
};

// A call of a module that has begun and not ended.
struct OpenCall {
  std::shared_ptr<ModuleSite> site;
  OpName name;
  uint64_t generation;
  int depth;  // of the interpreter's stack
  Record* record = nullptr;
  std::unique_ptr<Record> parameters;  // as they are when the forward begins
  std::vector<ModuleBuffer> buffers;   // of the module itself
  ModuleBackwardPtr backward;
};

/// Of this thread, innermost last.
std::vector<OpenCall>& OpenCalls();
/// The name of the buffer of the innermost one that begins at `data`; null where none does.
const std::string* BufferName(const char* data);

/// Right before the forward: its gradients will leave it by these arguments.
void SetInputs(OpenCall* call, PyObject* args);
/// Right after it: they will come by what it returned.
void SetOutputs(OpenCall* call, PyObject* output);
/// The function of Python that tells whether code that runs may use a tensor later: tensor -> bool.
void SetUsedLater(PyObject* function);

}  // namespace msprobe
