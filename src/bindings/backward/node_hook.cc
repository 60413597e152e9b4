#include "bindings/backward/node_hook.h"

#include <structmember.h>

#include <cstddef>
#include <utility>

#include "bindings/python/runtime.h"

namespace msprobe {
namespace {

struct HookObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  NodeHook* hook;
};

PyTypeObject* hook_type = nullptr;

PyObject* CallHook(PyObject* self, PyObject* const* args, size_t nargsf, PyObject*) {
  Shielded([&] { HookOf(self)->Run(args, PyVectorcall_NARGS(nargsf)); });
  Py_RETURN_NONE;
}

void DeallocHook(PyObject* self) {
  delete HookOf(self);
  PyTypeObject* type = Py_TYPE(self);
  PyObject_Free(self);
  Py_DECREF(type);
}

}  // namespace

PyObject* NewHookObject(std::unique_ptr<NodeHook> hook) {
  auto* object = PyObject_New(HookObject, hook_type);
  if (object == nullptr) return nullptr;
  object->vectorcall = CallHook;
  object->hook = hook.release();
  return reinterpret_cast<PyObject*>(object);
}

bool IsNodeHook(PyObject* object) { return Py_TYPE(object) == hook_type; }

NodeHook* HookOf(PyObject* object) { return reinterpret_cast<HookObject*>(object)->hook; }

void SetHandle(PyObject* hook, PyObject* handle) {
  static PyObject* const name = PyUnicode_InternFromString("hooks_dict_ref");
  Ref dict(PyObject_GetAttr(handle, name));
  if (!dict) return PyErr_Clear();
  HookOf(hook)->set_siblings(std::move(dict));
}

PyObject* GradAt(PyObject* grads, Py_ssize_t number) {
  if (!PyTuple_Check(grads)) return number == 0 ? grads : Py_None;
  return number < PyTuple_GET_SIZE(grads) ? PyTuple_GET_ITEM(grads, number) : Py_None;
}

bool InitNodeHookType() {
  if (hook_type != nullptr) return true;
  static PyMemberDef members[] = {
      {"__vectorcalloffset__", T_PYSSIZET, offsetof(HookObject, vectorcall), READONLY, nullptr},
      {nullptr, 0, 0, 0, nullptr}};
  static PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(DeallocHook)},
                                {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                                {Py_tp_members, members},
                                {0, nullptr}};
  static PyType_Spec spec = {"msprobe._core.BackwardHook", sizeof(HookObject), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL, slots};
  hook_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return hook_type != nullptr;
}

}  // namespace msprobe
