#include "bindings/torch/module_params.h"

#include <utility>

#include "bindings/backward/node_hook.h"
#include "bindings/python/runtime.h"
#include "bindings/torch/autograd_graph.h"
#include "bindings/torch/param_hook.h"
#include "bindings/torch/torch_objects.h"

namespace msprobe {
namespace {

// A FlatParameter (FSDP1) changes its size: a node that was made of the shard would refuse the gradient of the whole.
bool HasGradient(PyObject* parameter) {
  static PyObject* const is_flat = PyUnicode_InternFromString("_is_flat_param");
  return AttrIsTrue(parameter, torch_names.requires_grad) && !AttrIsTrue(parameter, is_flat);
}

bool IsDistributed() {
  static PyObject* const torch = PyImport_ImportModule("torch");
  static PyObject* const ask = torch != nullptr ? Attribute(torch, "distributed.is_initialized") : nullptr;
  Ref answer(ask != nullptr ? PyObject_CallNoArgs(ask) : nullptr);
  PyErr_Clear();
  return answer.get() == Py_True;
}

// Has the hook run once the gradient is in place. Hooks of the node run in the order in which they were added, and that
// of DistributedDataParallel, which divides the gradient and begins to reduce it where it is, is there before ours;
// those of the tensor run before all of them.
Ref AddHook(PyObject* accumulator, PyObject* parameter, PyObject* hook) {
  static PyObject* const after = PyUnicode_InternFromString("register_post_accumulate_grad_hook");
  if (IsDistributed()) {
    Ref handle(PyObject_CallMethodOneArg(parameter, after, hook));
    if (handle) return handle;
    PyErr_Clear();  // an older release
  }
  return Ref(PyObject_CallMethodOneArg(accumulator, torch_names.register_hook, hook));
}

}  // namespace

void ModuleParams::LetGo(KnownParam* k) {
  if (k->parameter) --grads->expected;
  const KnownParam gone = std::exchange(*k, {});
  if (!gone.handle) return;
  Ref removed(PyObject_CallMethodNoArgs(gone.handle.get(), torch_names.remove));
  if (!removed) PyErr_Clear();
}

KnownParam ModuleParams::HookOne(PyObject* name, PyObject* parameter) {
  Ref accumulator = AccumulatorOf(parameter);
  const char* text = PyUnicode_AsUTF8(name);
  Ref hook(accumulator && text != nullptr ? NewParamHook(grads, parameter, text) : nullptr);
  Ref handle(hook ? AddHook(accumulator.get(), parameter, hook.get()) : Ref());
  if (!handle) {
    PyErr_Clear();  // a parameter that is not a leaf
    return {};
  }
  return {Ref::Borrow(parameter), std::move(accumulator), std::move(hook), std::move(handle)};
}

void ModuleParams::HookAll(PyObject* params) {
  PyObject *name, *parameter;
  Py_ssize_t position = 0;
  size_t i = 0;
  while (PyDict_Next(params, &position, &name, &parameter)) {
    if (parameter == Py_None) continue;
    const Ref held_name = Ref::Borrow(name), held = Ref::Borrow(parameter);
    const size_t at = i++;
    if (at >= known.size()) known.resize(at + 1);
    const bool wanted = HasGradient(parameter);
    if (wanted ? known[at].parameter.get() == parameter : !known[at].parameter) continue;
    LetGo(&known[at]);
    // Another thread may be here meanwhile.
    KnownParam fresh = wanted ? HookOne(name, parameter) : KnownParam();
    if (!fresh.parameter || at >= known.size()) continue;
    LetGo(&known[at]);
    known[at] = std::move(fresh);
    ++grads->expected;
  }
  while (known.size() > i) {
    LetGo(&known.back());
    known.pop_back();
  }
}

void ModuleParams::Hook(PyObject* module) {
  const Runtime& r = rt();
  if (!r.options.backward || r.options.structure || !torch_objects().Grad()) return;
  Ref params(PyObject_GetAttr(module, torch_names.parameters));
  if (!params || !PyDict_Check(params.get())) return PyErr_Clear();
  HookAll(params.get());
}

bool ModuleParams::Changed(PyObject* module) const {
  if (!rt().options.backward || rt().options.structure) return false;
  Ref params(PyObject_GetAttr(module, torch_names.parameters));
  if (!params || !PyDict_Check(params.get())) return PyErr_Clear(), false;
  PyObject *name, *parameter;
  Py_ssize_t position = 0;
  size_t i = 0;
  while (PyDict_Next(params.get(), &position, &name, &parameter)) {
    if (parameter == Py_None) continue;
    PyObject* seen = i < known.size() ? known[i].parameter.get() : nullptr;
    ++i;
    if (seen != parameter && HasGradient(parameter)) return true;
  }
  return false;
}

void ModuleParams::LetGoOfOld(PyObject* module) {
  Ref params(PyObject_GetAttr(module, torch_names.parameters));
  if (!params || !PyDict_Check(params.get())) return PyErr_Clear();
  for (KnownParam& k : known) {
    PyObject *name, *parameter;
    Py_ssize_t position = 0;
    bool used = false;
    while (!used && PyDict_Next(params.get(), &position, &name, &parameter)) used = parameter == k.parameter.get();
    if (!used) LetGo(&k);
  }
}

}  // namespace msprobe
