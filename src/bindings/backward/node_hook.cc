#include "bindings/backward/node_hook.h"

#include <utility>

#include "bindings/python/runtime.h"

namespace msprobe {

PyObject* NodeHook::Call(PyObject* const* args, Py_ssize_t count) {
  Shielded([&] { Run(args, count); });
  Py_RETURN_NONE;
}

bool IsNodeHook(PyObject* object) { return dynamic_cast<NodeHook*>(HookIn(object)) != nullptr; }

NodeHook* HookOf(PyObject* object) { return static_cast<NodeHook*>(HookIn(object)); }

// In Python the handle alone takes longer than all the rest of a registration, and ours are never removed.
PyObject* PutIntoDict(PyObject* args) {
  if (PyTuple_GET_SIZE(args) != 2) return nullptr;
  PyObject *given = PyTuple_GET_ITEM(args, 0), *hook = PyTuple_GET_ITEM(args, 1);
  if (!IsNodeHook(hook)) return nullptr;
  const Ref dict = given == Py_None ? Ref(PyODict_New()) : Ref::Borrow(given);
  if (!dict || PyObject_SetItem(dict.get(), hook, hook) != 0) return nullptr;
  Ref weak(PyWeakref_NewRef(dict.get(), nullptr));
  return weak ? PyTuple_Pack(2, dict.get(), weak.get()) : nullptr;
}

void SetHandle(PyObject* hook, PyObject* handle) {
  if (PyWeakref_Check(handle)) return HookOf(hook)->set_siblings(Ref::Borrow(handle));  // of PutIntoDict()
  static PyObject* const name = PyUnicode_InternFromString("hooks_dict_ref");
  Ref dict(PyObject_GetAttr(handle, name));
  if (!dict) return PyErr_Clear();
  HookOf(hook)->set_siblings(std::move(dict));
}

PyObject* GradAt(PyObject* grads, Py_ssize_t number) {
  if (!PyTuple_Check(grads)) return number == 0 ? grads : Py_None;
  return number < PyTuple_GET_SIZE(grads) ? PyTuple_GET_ITEM(grads, number) : Py_None;
}

}  // namespace msprobe
