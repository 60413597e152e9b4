#include "bindings/torch/autograd_graph.h"

#include <string_view>
#include <utility>

#include "bindings/torch/torch_objects.h"

namespace msprobe {
namespace {

bool IsOfType(PyObject* node, std::string_view name) { return Py_TYPE(node)->tp_name == name; }

}  // namespace

Ref AccumulatorOf(PyObject* leaf) {
  Ref view(PyObject_CallMethodOneArg(leaf, torch_names.expand_as, leaf));
  Ref node(view ? PyObject_GetAttr(view.get(), torch_names.grad_fn) : nullptr);
  Ref next(node && node.get() != Py_None ? PyObject_GetAttr(node.get(), torch_names.next_functions) : nullptr);
  Ref first(next ? PySequence_GetItem(next.get(), 0) : nullptr);
  Ref accumulator(first ? PySequence_GetItem(first.get(), 0) : nullptr);
  PyErr_Clear();
  return accumulator;
}

GradEdge EdgeOf(PyObject* tensor) {
  GradEdge edge;
  Ref node(PyObject_GetAttr(tensor, torch_names.grad_fn));
  if (!node) PyErr_Clear();
  if (node.get() == Py_None) {
    edge.is_leaf = true;
    edge.node = AccumulatorOf(tensor);
    edge.key = edge.node ? NodeKey(edge.node.get()) : 0;
    return edge;
  }
  Ref number(node ? PyObject_GetAttr(tensor, torch_names.output_nr) : nullptr);
  edge.number = number ? PyLong_AsSsize_t(number.get()) : 0;
  edge.key = node ? NodeKey(node.get()) : 0;
  edge.node = std::move(node);
  PyErr_Clear();
  return edge;
}

TensorNode NodeOf(PyObject* tensor) {
  TensorNode at;
  Ref node(PyObject_GetAttr(tensor, torch_names.grad_fn));
  at.leaf = node.get() == Py_None;
  if (!node || at.leaf) return PyErr_Clear(), at;
  Ref number(PyObject_GetAttr(tensor, torch_names.output_nr));
  at.number = number ? PyLong_AsSsize_t(number.get()) : 0;
  at.sequence = SequenceOf(node.get());
  at.node = std::move(node);
  PyErr_Clear();
  return at;
}

TensorNode ViewedBy(PyObject* node) {
  TensorNode at;
  for (PyObject* view = node; IsOfType(view, "ViewBackward0"); view = at.node.get()) {
    Ref next(PyObject_GetAttr(view, torch_names.next_functions));
    PyObject* pair = next && PyTuple_Check(next.get()) && PyTuple_GET_SIZE(next.get()) == 1
                         ? PyTuple_GET_ITEM(next.get(), 0)
                         : nullptr;
    if (pair == nullptr || !PyTuple_Check(pair) || PyTuple_GET_ITEM(pair, 0) == Py_None)
      return PyErr_Clear(), TensorNode();
    at.number = PyLong_AsSsize_t(PyTuple_GET_ITEM(pair, 1));
    at.node = Ref::Borrow(PyTuple_GET_ITEM(pair, 0));
  }
  if (at.node) at.sequence = SequenceOf(at.node.get());
  if (at.sequence == kNoSequence) at.node = Ref();
  return at;
}

bool IsCopySlices(PyObject* node) { return IsOfType(node, "CopySlices"); }

uint64_t NextSequence() {
  const TorchObjects& o = torch_objects();
  if (o.next_sequence != nullptr) {
    Ref number(PyObject_CallNoArgs(o.next_sequence));
    return AsSequence(number.get());
  }
  // Older releases do not tell; a new node does.
  Ref view(PyObject_CallMethodOneArg(o.any_leaf, torch_names.view_as, o.any_leaf));
  Ref node(view ? PyObject_GetAttr(view.get(), torch_names.grad_fn) : nullptr);
  if (node && node.get() != Py_None) return SequenceOf(node.get()) + 1;
  PyErr_Clear();
  return kNoSequence;
}

}  // namespace msprobe
