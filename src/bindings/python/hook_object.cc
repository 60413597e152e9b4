#include "bindings/python/hook_object.h"

#include <structmember.h>

#include <cstddef>

namespace msprobe {
namespace {

struct HookObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  Hook* hook;  // null: a copy
};
PyTypeObject* hook_type = nullptr;

PyObject* CallHook(PyObject* self, PyObject* const* args, size_t nargsf, PyObject*) {
  Hook* hook = reinterpret_cast<HookObject*>(self)->hook;
  if (hook == nullptr) Py_RETURN_NONE;
  return hook->Call(args, PyVectorcall_NARGS(nargsf));
}

PyObject* NewCopy(PyTypeObject*, PyObject*, PyObject*) { return NewHookObject(nullptr); }
PyObject* ReduceHook(PyObject* self, PyObject*) { return Py_BuildValue("O()", Py_TYPE(self)); }

void DeallocHook(PyObject* self) {
  delete reinterpret_cast<HookObject*>(self)->hook;
  PyTypeObject* type = Py_TYPE(self);
  PyObject_Free(self);
  Py_DECREF(type);
}

}  // namespace

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
  return hook_type != nullptr;
}

}  // namespace msprobe
