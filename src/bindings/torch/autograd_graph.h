// How a tensor of PyTorch stands in the graph of the backward pass.
#pragma once

#include <cstdint>

#include "bindings/backward/graph_walk.h"

namespace msprobe {

/// Where the gradient of a tensor goes: its producer or, for a leaf, its accumulator. Empty when it needs none.
GradEdge EdgeOf(PyObject* tensor);

/// The node that made a tensor.
struct TensorNode {
  Ref node;
  uint64_t sequence = kNoSequence;
  Py_ssize_t number = 0;  // of its gradient among those of the node
  bool leaf = false;      // there is none: its gradient is accumulated
};
TensorNode NodeOf(PyObject* tensor);

/// Of a node that made a view of all elements of a tensor, the one that made that tensor; empty: it made something
/// else.
TensorNode ViewedBy(PyObject* node);
/// Whether it stands for work in place on a view: it is put at the tensor of which that is a view, and the node that
/// made the view takes no part any more.
bool IsCopySlices(PyObject* node);

/// The accumulator of a leaf, reached through the node of a view of it; empty where no gradient is wanted.
Ref AccumulatorOf(PyObject* leaf);

/// The number of the next node of this thread.
uint64_t NextSequence();

}  // namespace msprobe
