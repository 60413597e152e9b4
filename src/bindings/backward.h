// Callables that autograd runs: backward of APIs, backward of modules, gradients of parameters.
#pragma once

#include <memory>
#include <vector>

#include "bindings/py.h"
#include "bindings/runtime.h"
#include "capture/record.h"

namespace msprobe {

/// Whether this op is written to dump.json; asks the filter once per event.
bool ShouldCollect(const OpName& name, Risk risk);
/// For construct.json.
void AddParent(const OpName& name);

/// `output`'s producer tells when its gradients are there. `collect` is false for ops that only construct.json lists.
void HookApiBackward(PyObject* output, const OpName& name, Risk risk);

/// The backward of one call of a module: begins when the gradients of its outputs are known, ends when those of its
/// inputs are.
struct ModuleBackward {
  OpName name;
  uint64_t generation = 0;
  bool has_input_node = false;  // no input needs a gradient: ends where it begins
  bool passes_through = false;  // the output is the input, untouched: so are the gradients
  Record* record = nullptr;
  bool begun = false;

  void Begin(PyObject* const* grads, Py_ssize_t count);
  void End(PyObject* grad_inputs);
  bool Fresh() const { return generation == rt().generation && rt().running; }
};
using ModuleBackwardPtr = std::shared_ptr<ModuleBackward>;

/// Runs before a node; several modules may end at one node, the outermost comes first. New reference, or null with an
/// error.
PyObject* NewOutputHook(ModuleBackwardPtr backward, Py_ssize_t index);
void AddOuterModule(PyObject* output_hook, ModuleBackwardPtr backward, Py_ssize_t index);
/// Runs after a BackwardHookFunction node of outputs.
PyObject* NewOutputsHook(ModuleBackwardPtr backward);
/// Runs after the node of the inputs.
PyObject* NewInputHook(ModuleBackwardPtr backward);

/// Gradients of one module's own parameters in one step.
struct ParamGrads {
  const std::string* base = nullptr;
  uint64_t generation = 0;
  PyObject* first = nullptr;  // parameter whose gradient came first: each time it comes again a new entry begins
  int32_t index = 0;
  int expected = 0, seen = 0;
  Record* record = nullptr;

  void Add(PyObject* parameter, const char* name);
  void Finish();
};
using ParamGradsPtr = std::shared_ptr<ParamGrads>;
PyObject* NewParamHook(ParamGradsPtr grads, PyObject* parameter, const char* name);
/// At stop(): entries whose other parameters got no gradient.
void FinishParamGrads();

bool InitBackwardTypes();

}  // namespace msprobe
