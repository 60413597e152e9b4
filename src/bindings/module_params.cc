#include "bindings/module_params.h"

#include <utility>

#include "bindings/autograd_graph.h"
#include "bindings/runtime.h"

namespace msprobe {

void ModuleParams::LetGo(KnownParam* k) {
  if (k->parameter) --grads->expected;
  const KnownParam gone = std::exchange(*k, {});
  if (!gone.handle) return;
  Ref removed(PyObject_CallMethodNoArgs(gone.handle.get(), names.remove));
  if (!removed) PyErr_Clear();
}

KnownParam ModuleParams::HookOne(PyObject* name, PyObject* parameter) {
  Ref accumulator = AccumulatorOf(parameter);
  const char* text = PyUnicode_AsUTF8(name);
  Ref hook(accumulator && text != nullptr ? NewParamHook(grads, parameter, text) : nullptr);
  Ref handle(hook ? PyObject_CallMethodOneArg(accumulator.get(), names.register_hook, hook.get()) : nullptr);
  if (!handle) {
    PyErr_Clear();  // a parameter that is no leaf
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
    const bool wanted = AttrIsTrue(parameter, names.requires_grad);
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
  if (!r.options.backward || r.options.structure || !r.Grad()) return;
  Ref params(PyObject_GetAttr(module, names.parameters));
  if (!params || !PyDict_Check(params.get())) return PyErr_Clear();
  HookAll(params.get());
}

bool ModuleParams::Changed(PyObject* module) const {
  if (!rt().options.backward || rt().options.structure) return false;
  Ref params(PyObject_GetAttr(module, names.parameters));
  if (!params || !PyDict_Check(params.get())) return PyErr_Clear(), false;
  PyObject *name, *parameter;
  Py_ssize_t position = 0;
  size_t i = 0;
  while (PyDict_Next(params.get(), &position, &name, &parameter)) {
    if (parameter == Py_None) continue;
    PyObject* seen = i < known.size() ? known[i].parameter.get() : nullptr;
    ++i;
    if (seen != parameter && AttrIsTrue(parameter, names.requires_grad)) return true;
  }
  return false;
}

void ModuleParams::LetGoOfOld(PyObject* module) {
  Ref params(PyObject_GetAttr(module, names.parameters));
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
