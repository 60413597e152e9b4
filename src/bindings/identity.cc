#include "bindings/identity.h"

#include "bindings/runtime.h"
#include "bindings/values.h"

namespace msprobe {
namespace {

constexpr int kMaxDepth = 400;

using Replacements =
    std::vector<std::pair<PyObject*, Ref>>;  // old tensor (borrowed), new one; each used once, in order

PyObject* Replace(PyObject* value, Replacements* r, size_t* next, int depth);

PyObject* ReplaceInTuple(PyObject* tuple, Replacements* r, size_t* next, int depth) {
  const Py_ssize_t n = PyTuple_GET_SIZE(tuple);
  Ref items(PyTuple_New(n));
  if (!items) return nullptr;
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* item = Replace(PyTuple_GET_ITEM(tuple, i), r, next, depth + 1);
    if (item == nullptr) return nullptr;
    PyTuple_SET_ITEM(items.get(), i, item);
  }
  PyObject* type = reinterpret_cast<PyObject*>(Py_TYPE(tuple));
  if (PyTuple_CheckExact(tuple)) return items.release();
  // A named tuple takes its fields one by one, other kinds of tuples a sequence.
  if (PyObject_HasAttr(tuple, names.fields)) return PyObject_CallObject(type, items.get());
  return PyObject_CallOneArg(type, items.get());
}

// Lists and dicts are changed where they are: the module may rely on which object it was given.
PyObject* ReplaceInList(PyObject* list, Replacements* r, size_t* next, int depth) {
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
    Ref old = Ref::Borrow(PyList_GET_ITEM(list, i));
    PyObject* item = Replace(old.get(), r, next, depth + 1);
    if (item == nullptr || PyList_SetItem(list, i, item) != 0) return nullptr;
  }
  Py_INCREF(list);
  return list;
}

PyObject* ReplaceInDict(PyObject* dict, Replacements* r, size_t* next, int depth) {
  Ref items(PyMapping_Items(dict));
  if (!items) return nullptr;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i) {
    PyObject* pair = PyList_GET_ITEM(items.get(), i);
    Ref item(Replace(PyTuple_GET_ITEM(pair, 1), r, next, depth + 1));
    if (!item) return nullptr;
    if (item.get() == PyTuple_GET_ITEM(pair, 1)) continue;
    if (PyObject_SetItem(dict, PyTuple_GET_ITEM(pair, 0), item.get()) != 0) return nullptr;
  }
  Py_INCREF(dict);
  return dict;
}

PyObject* Replace(PyObject* value, Replacements* r, size_t* next, int depth) {
  if (*next < r->size() && value == (*r)[*next].first) {
    PyObject* item = (*r)[(*next)++].second.get();
    Py_INCREF(item);
    return item;
  }
  if (depth < kMaxDepth && *next < r->size()) {
    if (PyTuple_Check(value)) return ReplaceInTuple(value, r, next, depth);
    if (PyList_Check(value)) return ReplaceInList(value, r, next, depth);
    if (PyDict_Check(value)) return ReplaceInDict(value, r, next, depth);
  }
  Py_INCREF(value);
  return value;
}

PyObject* ReplaceAll(PyObject* value, const std::vector<PyObject*>& tensors, PyObject* replacements) {
  Replacements pairs;
  for (size_t i = 0; i < tensors.size(); ++i) {
    // Some subclasses of Tensor lose their type on the way; the module must get what it was given.
    if (Py_TYPE(PyTuple_GET_ITEM(replacements, static_cast<Py_ssize_t>(i))) == Py_TYPE(tensors[i])) continue;
    if (Py_TYPE(tensors[i]) == rt().parameter) continue;
    return PyErr_Format(PyExc_TypeError, "a view of a %s is of another type", Py_TYPE(tensors[i])->tp_name);
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    pairs.emplace_back(tensors[i], Ref::Borrow(PyTuple_GET_ITEM(replacements, static_cast<Py_ssize_t>(i))));
  }
  size_t next = 0;
  return Replace(value, &pairs, &next, 0);
}

// Outputs of a custom function that are its inputs count as views that must not be changed in place; the module's user
// may well do that (residual += x), and nothing is wrong with it: the function is the identity.
void AllowInPlace(PyObject* tensor) {
  Runtime& r = rt();
  if (r.set_creation_meta == nullptr || r.default_creation_meta == nullptr) return;
  Ref base(PyObject_GetAttr(tensor, names.base));
  if (base && base.get() != Py_None) {
    Ref set(PyObject_CallFunctionObjArgs(r.set_creation_meta, tensor, r.default_creation_meta, nullptr));
    if (!set) PyErr_Clear();
  }
  PyErr_Clear();
}

}  // namespace

void CollectGradTensors(PyObject* value, std::vector<PyObject*>* out, int depth) {
  if (IsTensor(value)) {
    if (AttrIsTrue(value, names.requires_grad)) out->push_back(value);
  } else if (depth > kMaxDepth) {
    return;
  } else if (PyTuple_Check(value) || PyList_Check(value)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(value); ++i) {
      CollectGradTensors(PySequence_Fast_GET_ITEM(value, i), out, depth + 1);
    }
  } else if (PyDict_Check(value)) {
    PyObject *k, *v;
    Py_ssize_t position = 0;
    while (PyDict_Next(value, &position, &k, &v)) CollectGradTensors(v, out, depth + 1);
  }
}

PyObject* ThroughIdentity(PyObject* args, const std::vector<PyObject*>& tensors, PyObject* hook) {
  if (tensors.size() != 1) return ThroughBackwardFunction(args, tensors, hook);
  Ref view(PyObject_CallMethodOneArg(tensors[0], names.view_as, tensors[0]));
  Ref node(view ? PyObject_GetAttr(view.get(), names.grad_fn) : nullptr);
  Ref handle(node ? PyObject_CallMethodOneArg(node.get(), names.register_hook, hook) : nullptr);
  Ref pack(handle ? PyTuple_Pack(1, view.get()) : nullptr);
  return pack ? ReplaceAll(args, tensors, pack.get()) : nullptr;
}

PyObject* ThroughBackwardFunction(PyObject* value, const std::vector<PyObject*>& tensors, PyObject* hook) {
  Ref list(PyTuple_New(static_cast<Py_ssize_t>(tensors.size())));
  if (!list) return nullptr;
  for (size_t i = 0; i < tensors.size(); ++i) {
    Py_INCREF(tensors[i]);
    PyTuple_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), tensors[i]);
  }
  Ref same(PyObject_CallObject(rt().backward_apply, list.get()));
  if (!same || !PyTuple_Check(same.get()) || PyTuple_GET_SIZE(same.get()) != PyTuple_GET_SIZE(list.get())) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, "BackwardHookFunction changed the number of tensors");
    return nullptr;
  }
  Ref node(PyObject_GetAttr(PyTuple_GET_ITEM(same.get(), 0), names.grad_fn));
  Ref handle(node && node.get() != Py_None ? PyObject_CallMethodOneArg(node.get(), names.register_hook, hook)
                                           : nullptr);
  if (!handle) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, "BackwardHookFunction made no node");
    return nullptr;
  }
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(same.get()); ++i) AllowInPlace(PyTuple_GET_ITEM(same.get(), i));
  return ReplaceAll(value, tensors, same.get());
}

}  // namespace msprobe
