#include "bindings/torch/module_params.h"

#include <algorithm>
#include <string>
#include <utility>

#include "bindings/python/runtime.h"
#include "bindings/python/tensor_record.h"
#include "bindings/torch/autograd_graph.h"
#include "bindings/torch/param_hook.h"
#include "bindings/torch/torch_objects.h"

namespace msprobe {
namespace {

bool WantsGradient(PyObject* parameter) { return AttrIsTrue(parameter, torch_names.requires_grad); }

// A FlatParameter (FSDP1) stands for all parameters of its module, which are views of it.
bool IsFlat(PyObject* parameter) {
  static PyObject* const is_flat = PyUnicode_InternFromString("_is_flat_param");
  return AttrIsTrue(parameter, is_flat);
}

bool IsPartOfFlat(PyObject* tensor) {
  static PyObject* const base = PyUnicode_InternFromString("_base");
  Ref whole(PyObject_GetAttr(tensor, base));
  if (!whole) PyErr_Clear();
  return whole && IsFlat(whole.get());
}

Ref HooksOf(PyObject* tensor, PyObject* which) {
  Ref hooks(PyObject_GetAttr(tensor, which));
  if (!hooks || !PyDict_Check(hooks.get())) {
    PyErr_Clear();
    return {};
  }
  return hooks;
}

bool HasHook(PyObject* tensor, PyObject* which, PyObject* id) {
  const Ref hooks = HooksOf(tensor, which);
  const bool found = hooks && PyDict_Contains(hooks.get(), id) == 1;
  PyErr_Clear();
  return found;
}

// The address of what autograd knows of a tensor.
int64_t ImplOf(PyObject* tensor) {
  static PyObject* const name = PyUnicode_InternFromString("_cdata");
  return AttrAsInteger(tensor, name);
}

// The same object says nothing: torch.utils.swap_tensors, which DTensors are moved by, gives it what autograd knows of
// another, and leaves it a dict of hooks that never run. Numbers of hooks are given once in a process.
bool IsHooked(const KnownParam& known, PyObject* parameter) {
  if (known.accumulator) return known.tensor == parameter;
  if (!known.id) return false;
  if (HasHook(parameter, torch_names.post_accumulate_grad_hooks, known.id.get())) {
    return ImplOf(parameter) == known.impl;
  }
  return HasHook(parameter, torch_names.backward_hooks, known.id.get());
}

bool IsLeafTensor(PyObject* tensor) {
  Ref producer(PyObject_GetAttr(tensor, torch_names.grad_fn));
  if (!producer) PyErr_Clear();
  return producer.get() == Py_None;
}

// A parameter that was away for some calls (torch.func.functional_call) still has its hook.
bool FindHook(PyObject* hooks, const ParamGradsPtr& grads, size_t slot, KnownParam* known) {
  PyObject *id, *hook;
  Py_ssize_t position = 0;
  while (hooks != nullptr && PyDict_Next(hooks, &position, &id, &hook)) {
    if (!IsParamHookOf(hook, grads, slot)) continue;
    known->id = Ref::Borrow(id);
    known->hook = Ref::Borrow(hook);
    return true;
  }
  return false;
}

Ref IdOf(PyObject* handle) {
  static PyObject* const id = PyUnicode_InternFromString("id");
  return Ref(handle != nullptr ? PyObject_GetAttr(handle, id) : nullptr);
}

// The order in which autograd runs them is that of the plain dict, which move_to_end() of an OrderedDict leaves alone.
void PutOthersBehind(PyObject* hooks) {
  Ref items(PyMapping_Items(hooks));
  for (Py_ssize_t i = 0; items && i < PyList_GET_SIZE(items.get()); ++i) {
    PyObject* item = PyList_GET_ITEM(items.get(), i);
    PyObject *id = PyTuple_GET_ITEM(item, 0), *hook = PyTuple_GET_ITEM(item, 1);
    if (IsParamHook(hook)) continue;
    if (PyObject_DelItem(hooks, id) != 0 || PyObject_SetItem(hooks, id, hook) != 0) return;
  }
}

// Before those of the user, which may use the gradient up: an optimizer within the backward pass.
void AddFirstHook(PyObject* parameter, KnownParam* known) {
  static PyObject* const add = PyUnicode_InternFromString("register_post_accumulate_grad_hook");
  Ref handle(PyObject_CallMethodOneArg(parameter, add, known->hook.get()));
  known->id = IdOf(handle.get());
  const Ref hooks = known->id ? HooksOf(parameter, torch_names.post_accumulate_grad_hooks) : Ref();
  if (hooks && PyDict_GET_SIZE(hooks.get()) > 1) PutOthersBehind(hooks.get());
}

// What others had there is lost to autograd, and stays so.
void AddToFreshDict(PyObject* parameter, KnownParam* known) {
  const Ref lost = HooksOf(parameter, torch_names.post_accumulate_grad_hooks);
  Ref fresh(lost ? PyObject_CallNoArgs(reinterpret_cast<PyObject*>(Py_TYPE(lost.get()))) : nullptr);
  if (!fresh || PyObject_SetAttr(parameter, torch_names.post_accumulate_grad_hooks, fresh.get()) != 0) return;
  AddFirstHook(parameter, known);
}

bool HasPostAccumulateHooks(PyObject* parameter) {
  static const bool has = PyObject_HasAttr(parameter, torch_names.post_accumulate_grad_hooks) == 1;
  return has;
}

void AddHookTo(PyObject* object, KnownParam* known) {
  Ref handle(PyObject_CallMethodOneArg(object, torch_names.register_hook, known->hook.get()));
  const bool by_itself = handle && PyWeakref_Check(handle.get());  // PutIntoDict()
  known->id = by_itself ? known->hook : IdOf(handle.get());
}

struct ParameterOwner {
  Ref reference;  // weak
  ModuleParams params;
};

std::vector<ParameterOwner>& ParameterOwners() {
  static auto* owners = new std::vector<ParameterOwner>;
  return *owners;
}

}  // namespace

KnownParam ModuleParams::HookOne(PyObject* name, PyObject* parameter, size_t slot) {
  const KnownParam before = known[slot];
  KnownParam fresh;
  const char* text = PyUnicode_AsUTF8(name);
  if (text == nullptr) return PyErr_Clear(), fresh;
  if (!IsPlainTensor(parameter)) InTool::DisableOverrides();
  const bool leaf = IsLeafTensor(parameter);
  const bool old = leaf && !HasPostAccumulateHooks(parameter);
  PyObject* dict = leaf ? torch_names.post_accumulate_grad_hooks : torch_names.backward_hooks;
  const int64_t impl = leaf && !old ? ImplOf(parameter) : 0;
  const bool found = FindHook(HooksOf(parameter, dict).get(), grads, slot, &fresh);
  if (found && before.id && before.impl != impl &&
      PyObject_RichCompareBool(before.id.get(), fresh.id.get(), Py_EQ) == 1) {
    AddToFreshDict(parameter, &fresh);
  } else if (!found) {
    const ParamPlace place{slot, text, leaf ? ParamTold::kBehindAccumulation : ParamTold::kBeforeNode};
    fresh.hook = Ref(NewParamHook(grads, place, old ? parameter : nullptr));
    // Of PyTorch 2.0 behind those hooks of the accumulator that are there already.
    if (old) fresh.accumulator = AccumulatorOf(parameter);
    if (fresh.hook && leaf && !old) AddFirstHook(parameter, &fresh);
    if (fresh.hook && (!leaf || fresh.accumulator)) AddHookTo(leaf ? fresh.accumulator.get() : parameter, &fresh);
  }
  if (!fresh.id || PyErr_Occurred()) {
    const std::string why = PyErr_Occurred() ? TakeError() : "it takes no hook";
    NoteSkip("the gradient of a parameter could not be hooked", *grads->base + "." + text + ": " + why);
    return {};
  }
  fresh.impl = impl;
  fresh.tensor = parameter;
  fresh.wanted = true;
  fresh.by_node = !leaf;
  SetParamHookQuiet(fresh.hook.get(), false);
  return fresh;
}

void ModuleParams::HookAll(PyObject* params) {
  PyObject *name, *parameter;
  Py_ssize_t position = 0;
  size_t i = 0;
  int expected = 0;
  while (PyDict_Next(params, &position, &name, &parameter)) {
    if (parameter == Py_None) continue;
    const Ref held_name = Ref::Borrow(name), held = Ref::Borrow(parameter);
    const size_t at = i++;
    if (at >= known.size()) known.resize(at + 1);
    known[at].wanted = WantsGradient(parameter);
    if (!known[at].wanted) continue;
    ++expected;
    if (IsHooked(known[at], parameter)) {
      known[at].tensor = parameter;
      continue;
    }
    // A part of the whole stands in the place of the parameter, which autograd does not reach. Other tensors do so in
    // torch.func.functional_call(): what the parameter itself gets is told by its own hook.
    if (known[at].hook && !IsLeafTensor(parameter)) {
      if (!IsPartOfFlat(parameter)) continue;
      SetParamHookQuiet(known[at].hook.get(), true);
    }
    KnownParam fresh = IsFlat(parameter) ? KnownParam() : HookOne(name, parameter, at);
    if (!fresh.hook) --expected;
    if (at < known.size()) known[at] = std::move(fresh);  // another thread may be here meanwhile
  }
  known.resize(i);
  grads->expected = expected;
  grads->foreseen = std::none_of(known.begin(), known.end(), [](const KnownParam& p) { return p.wanted && p.by_node; });
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
    const size_t at = i++;
    if (at < known.size() && IsHooked(known[at], parameter)) continue;
    if (WantsGradient(parameter) && !IsFlat(parameter)) return true;
  }
  return false;
}

bool AddParameterOwner(PyObject* module, const char* base) {
  ParameterOwner owner;
  owner.reference = Ref(PyWeakref_NewRef(module, nullptr));
  if (!owner.reference) return false;
  owner.params.grads->base = InternName(base);
  owner.params.grads->counts = CountsOf(owner.params.grads->base);
  ParameterOwners().push_back(std::move(owner));
  return true;
}

void HookParameterOwners() {
  std::erase_if(ParameterOwners(), [](const ParameterOwner& o) { return !WeakTarget(o.reference.get()); });
  for (ParameterOwner& owner : ParameterOwners()) {
    const Ref module = WeakTarget(owner.reference.get());
    if (!module) continue;
    InTool guard;
    Shielded([&] { owner.params.Hook(module.get()); });
  }
}

}  // namespace msprobe
