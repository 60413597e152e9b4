// The autograd graph as Python shows it: which nodes a call made, and which of them lead to its inputs.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bindings/python/py.h"

namespace msprobe {

/// A gradient of a node: that of its output `number`.
struct GradEdge {
  Ref node;
  Py_ssize_t number = 0;

  bool operator==(const GradEdge& o) const { return node.get() == o.node.get() && number == o.number; }
};

/// Where the gradient of a tensor goes: its producer or, for a leaf, its accumulator. Empty when it needs none.
GradEdge EdgeOf(PyObject* tensor);

/// The accumulator of a leaf, reached through the node of a view of it; empty where no gradient is wanted.
Ref AccumulatorOf(PyObject* leaf);

/// Nodes are numbered by thread in the order of their making, and autograd runs the highest that is ready; accumulators
/// have the highest number of all, as has, here, a node that tells none.
inline constexpr uint64_t kNoSequence = UINT64_MAX;
uint64_t SequenceOf(PyObject* node);
/// The number of the next node of this thread.
uint64_t NextSequence();

/// An edge from one of the nodes of a call to one of its inputs.
struct InputEdge {
  PyObject* node;  // borrowed from the walk
  Ref* hook;       // a place for the hook that shares `node` with others; lives as long as the walk remembers
  uint64_t sequence;
  Py_ssize_t slot;  // of the node's gradients
  size_t input;     // index of `inputs`
};

/// Remembers the nodes that it has seen until Forget(), so that nested calls ask Python once per node. Holds the nodes.
class GraphWalk {
 public:
  static GraphWalk& OfThread();

  /// Edges to `inputs` of the nodes behind `outputs` that are not older than `since`.
  void FindEdges(const std::vector<GradEdge>& outputs, uint64_t since, const std::vector<GradEdge>& inputs,
                 std::vector<InputEdge>* found);
  /// Of the nodes seen so far that lead to this accumulator the one that runs last; kNoSequence if none does.
  uint64_t LastUser(PyObject* accumulator) const;
  void Forget();

 private:
  struct Node {
    Ref object;
    Ref hook;
    uint64_t sequence = 0;
    uint64_t visit = 0;
    uint64_t input_visit = 0;  // the visit in which the gradient of an input is among its own
    uint64_t last_user = kNoSequence;
    bool expanded = false;
    std::vector<std::pair<Node*, Py_ssize_t>> next;  // null: no gradient wanted there
  };
  Node* Get(PyObject* object);
  void Expand(Node* node);

  std::unordered_map<PyObject*, std::unique_ptr<Node>> nodes_;
  std::vector<Node*> todo_;
  uint64_t visit_ = 0;
};

}  // namespace msprobe
