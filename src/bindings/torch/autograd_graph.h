// How a tensor of PyTorch stands in the graph of the backward pass.
#pragma once

#include <cstdint>

#include "bindings/backward/graph_walk.h"

namespace msprobe {

/// Where the gradient of a tensor goes: its producer or, for a leaf, its accumulator. Empty when it needs none.
GradEdge EdgeOf(PyObject* tensor);

/// The accumulator of a leaf, reached through the node of a view of it; empty where no gradient is wanted.
Ref AccumulatorOf(PyObject* leaf);

/// The number of the next node of this thread.
uint64_t NextSequence();

}  // namespace msprobe
