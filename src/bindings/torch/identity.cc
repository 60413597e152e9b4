#include "bindings/torch/identity.h"

#include "bindings/python/framework.h"
#include "bindings/python/runtime.h"
#include "bindings/python/tensor_record.h"
#include "bindings/torch/torch_objects.h"

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

}  // namespace

void CollectGradTensors(PyObject* value, std::vector<PyObject*>* out, int depth) {
  if (IsTensor(value)) {
    if (AttrIsTrue(value, torch_names.requires_grad)) out->push_back(value);
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

PyObject* ReplaceTensors(PyObject* value, const std::vector<PyObject*>& tensors, const std::vector<Ref>& views) {
  Replacements pairs;
  for (size_t i = 0; i < tensors.size(); ++i) {
    // Some subclasses of Tensor lose their type on the way; the user must get what the module returned.
    if (Py_TYPE(views[i].get()) != Py_TYPE(tensors[i]) && Py_TYPE(tensors[i]) != framework().types().parameter) {
      return PyErr_Format(PyExc_TypeError, "a view of a %s is of a different type", Py_TYPE(tensors[i])->tp_name);
    }
    pairs.emplace_back(tensors[i], views[i]);
  }
  size_t next = 0;
  return Replace(value, &pairs, &next, 0);
}

}  // namespace msprobe
