// The graph of a backward pass as Python shows it, alike in every framework that has nodes: which of them lead from the
// outputs of a call to its inputs.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bindings/python/py.h"

namespace msprobe {

/// Names of the attributes of a node. Set before the first walk.
struct GradNodeNames {
  PyObject *next_functions, *sequence_nr;
  PyObject* unique_id;  // a method, where a node is shown by another object each time; null: by the same
  PyObject* name;       // a method, that tells accumulators apart where nodes have no unique_id (MindSpore 2.7, 2.8)
  PyObject* variable;   // of an accumulator: the tensor whose gradient it takes; null: it does not tell
};
extern GradNodeNames node_names;
/// Tells nodes apart while they live.
uintptr_t NodeKey(PyObject* node);

/// A gradient of a node: that of its output `number`.
struct GradEdge {
  Ref node;
  Py_ssize_t number = 0;
  uintptr_t key = 0;     // of the node
  bool is_leaf = false;  // the tensor has no node of its own: this one is its accumulator

  bool operator==(const GradEdge& o) const { return key == o.key && number == o.number; }
};

/// Nodes are numbered by thread in the order of their making, and autograd runs the highest that is ready; accumulators
/// have the highest number of all, as has, here, a node that tells none.
inline constexpr uint64_t kNoSequence = UINT64_MAX;
uint64_t SequenceOf(PyObject* node);
/// Of the Python number, nullptr where asking for it failed; kNoSequence and no exception where it is none.
uint64_t AsSequence(PyObject* number);

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
  /// A place for the hook of this node, as InputEdge::hook.
  Ref* HookPlace(const GradEdge& edge) { return &Get(edge.node.get(), edge.key)->hook; }
  void Forget();

 private:
  struct Node {
    Ref object;
    uintptr_t key = 0;
    Ref hook;
    uint64_t sequence = 0;
    uint64_t visit = 0;
    uint64_t input_visit = 0;  // the visit in which the gradient of an input is among its own
    bool expanded = false;
    std::vector<std::pair<Node*, Py_ssize_t>> next;  // null: no gradient wanted there
  };
  Node* Get(PyObject* object, uintptr_t key);
  void Expand(Node* node);

  std::unordered_map<uintptr_t, std::unique_ptr<Node>> nodes_;
  size_t most_nodes_ = 0;
  std::vector<Node*> todo_;
  uint64_t visit_ = 0;
};

}  // namespace msprobe
