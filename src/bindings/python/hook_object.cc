#include "bindings/python/hook_object.h"

#include <structmember.h>

#include <cstddef>
#include <utility>

#include "bindings/python/runtime.h"

namespace msprobe {
namespace {

struct HookObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  Hook* hook;  // null: a copy
};
PyTypeObject* hook_type = nullptr;

PyObject* set_eval_frame = nullptr;

Ref Exchange(PyObject* callback) {
  const InTool guard;  // the region goes on
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  Ref prior(PyObject_CallOneArg(set_eval_frame, callback));
  if (!prior) PyErr_Clear();
  PyErr_Restore(type, value, trace);
  return prior;
}

PyObject* CallHook(PyObject* self, PyObject* const* args, size_t nargsf, PyObject*) {
  Hook* hook = reinterpret_cast<HookObject*>(self)->hook;
  if (hook == nullptr) Py_RETURN_NONE;
  const CompilerAside aside;
  return hook->Call(args, PyVectorcall_NARGS(nargsf));
}

class Callback final : public Hook {
 public:
  explicit Callback(Ref function) : function_(std::move(function)) {}
  PyObject* Call(PyObject* const* args, Py_ssize_t count) override {
    const Ref held(function_);  // it may remove itself
    return PyObject_Vectorcall(held.get(), args, static_cast<size_t>(count), nullptr);
  }

 private:
  Ref function_;
};

PyObject* NewCopy(PyTypeObject*, PyObject*, PyObject*) { return NewHookObject(nullptr); }

// Copies and saved models hold a method of the standard library instead, which does nothing, so that they need no
// msprobe.
PyObject* ReduceHook(PyObject*, PyObject*) {
  Ref builtins(PyImport_ImportModule("builtins")), contexts(PyImport_ImportModule("contextlib"));
  Ref get(builtins ? PyObject_GetAttrString(builtins.get(), "getattr") : nullptr);
  Ref nothing(contexts ? PyObject_CallMethod(contexts.get(), "nullcontext", nullptr) : nullptr);
  return get && nothing ? Py_BuildValue("O(Os)", get.get(), nothing.get(), "__exit__") : nullptr;
}

void DeallocHook(PyObject* self) {
  delete reinterpret_cast<HookObject*>(self)->hook;
  PyTypeObject* type = Py_TYPE(self);
  PyObject_Free(self);
  Py_DECREF(type);
}

}  // namespace

void CompilerAside::Use(PyObject* function) {
  Py_INCREF(function);
  Py_XSETREF(set_eval_frame, function);
}

CompilerAside::CompilerAside() {
  if (t_flags.in_region && set_eval_frame != nullptr) prior_ = Exchange(Py_None);
}

CompilerAside::~CompilerAside() {
  if (prior_) Exchange(prior_.get());
}

PyObject* NewHookObject(std::unique_ptr<Hook> hook) {
  auto* object = PyObject_New(HookObject, hook_type);
  if (object == nullptr) return nullptr;
  object->vectorcall = CallHook;
  object->hook = hook.release();
  return reinterpret_cast<PyObject*>(object);
}

Hook* HookIn(PyObject* object) {
  return Py_TYPE(object) == hook_type ? reinterpret_cast<HookObject*>(object)->hook : nullptr;
}

PyObject* NewCallback(PyObject* function) {
  return InitHookType() ? NewHookObject(std::make_unique<Callback>(Ref::Borrow(function))) : nullptr;
}

PyObject* HookType() { return reinterpret_cast<PyObject*>(hook_type); }

bool InitHookType() {
  if (hook_type != nullptr) return true;
  static PyMemberDef members[] = {
      {"__vectorcalloffset__", T_PYSSIZET, offsetof(HookObject, vectorcall), READONLY, nullptr},
      {nullptr, 0, 0, 0, nullptr}};
  static PyMethodDef methods[] = {{"__reduce__", ReduceHook, METH_NOARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};
  static PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(DeallocHook)},
                                {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                                {Py_tp_new, reinterpret_cast<void*>(NewCopy)},
                                {Py_tp_members, members},
                                {Py_tp_methods, methods},
                                {0, nullptr}};
  static PyType_Spec spec = {"msprobe._core.ModuleHook", sizeof(HookObject), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL, slots};
  hook_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  // Saving a tensor with such a hook loses nothing, so PyTorch need not warn of it.
  return hook_type != nullptr && PyDict_SetItemString(hook_type->tp_dict, "__torch_unserializable__", Py_True) == 0;
}

}  // namespace msprobe
