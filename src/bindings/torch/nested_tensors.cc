#include "bindings/torch/nested_tensors.h"

#include "bindings/python/runtime.h"
#include "bindings/python/tensor_record.h"
#include "bindings/torch/torch_objects.h"

namespace msprobe {
namespace {

constexpr int kMaxDepth = 400;

// Of a dataclass.
void CollectFromFields(PyObject* value, std::vector<PyObject*>* out, int depth) {
  Ref fields(PyObject_GetAttr(reinterpret_cast<PyObject*>(Py_TYPE(value)), names.dataclass_fields));
  Ref list(fields ? PySequence_List(fields.get()) : nullptr);
  for (Py_ssize_t i = 0; list && i < PyList_GET_SIZE(list.get()); ++i) {
    Ref field(PyObject_GetAttr(value, PyList_GET_ITEM(list.get(), i)));
    if (field) CollectGradTensors(field.get(), out, depth + 1);  // the value holds it
  }
  PyErr_Clear();
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
  } else if (Py_TYPE(value)->tp_flags & Py_TPFLAGS_HEAPTYPE) {
    CollectFromFields(value, out, depth);
  }
}

}  // namespace msprobe
