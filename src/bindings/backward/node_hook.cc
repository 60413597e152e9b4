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

}  // namespace msprobe
