// Callables that autograd runs: backward of APIs, backward of modules, gradients of parameters.
#pragma once

#include <memory>
#include <vector>

#include "bindings/module_backward.h"
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

/// Runs before the node of a module's only output, whose gradient is number `number` there. Several modules may end at
/// one node: the outermost comes first. New reference, or null with an error.
PyObject* NewOutputHook(ModuleBackwardPtr backward, Py_ssize_t number, uint64_t sequence);
void AddOuterModule(PyObject* output_hook, ModuleBackwardPtr backward, Py_ssize_t number);
/// Runs before the node of one of several outputs.
PyObject* NewOneOutputHook(ModuleBackwardPtr backward, size_t output, uint64_t sequence);
/// Runs after a node with edges to inputs of modules, added by AddInputEdge().
PyObject* NewEdgeHook(uint64_t sequence);
void AddInputEdge(PyObject* edge_hook, ModuleBackwardPtr backward, Py_ssize_t slot, size_t input);

/// Told by autograd when the pass of this number is over.
PyObject* NewEndOfPassHook(int64_t pass);

/// Numbers a name's entries within a step. By name, for several models may have the same names.
struct Counter {
  int32_t last = -1;
  uint64_t generation = 0;
  int32_t Next();
};
struct NameCounts {
  Counter forwards, param_grads;
};
NameCounts* CountsOf(const std::string* base);

/// Gradients of one module's own parameters in one step.
struct ParamGrads {
  const std::string* base = nullptr;
  NameCounts* counts = nullptr;
  uint64_t generation = 0;
  uint64_t called = 0;        // the last step in which the module was called: others may use its parameters, too
  PyObject* first = nullptr;  // parameter whose gradient came first: each time it comes again a new entry begins
  int expected = 0, seen = 0;
  bool listed = false;  // among those that FinishParamGrads() looks at
  Record* record = nullptr;

  void Add(PyObject* parameter, const char* name);
  void Finish();
};
using ParamGradsPtr = std::shared_ptr<ParamGrads>;
PyObject* NewParamHook(ParamGradsPtr grads, PyObject* parameter, const char* name);
/// The node that runs right before the gradient is there.
void SetParamHookSequence(PyObject* hook, uint64_t sequence);
/// At stop(): entries whose other parameters got no gradient.
void FinishParamGrads();

/// Whether autograd would call one of ours.
bool IsBackwardHook(PyObject* hook);
/// Tells a hook in which dict it is, by the handle of its registration.
void SetHandle(PyObject* hook, PyObject* handle);

bool InitBackwardTypes();

}  // namespace msprobe
