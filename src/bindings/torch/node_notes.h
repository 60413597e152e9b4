// What is known of a node of autograd: whose gradients it brings.
//
// It is kept in the node itself, in the dict that torch has for notes (anomaly mode writes there), so that it ends with
// the node and keeps no graph alive. Nodes are shown to Python by another object each time, and an address comes again.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "bindings/python/py.h"

namespace msprobe {

class ModuleHook;

/// Who is told of the gradients of a call.
class PortOwner {
 public:
  virtual ~PortOwner() = default;
  /// What the node of an output is about to receive.
  virtual void OnOutputGrad(size_t index, PyObject* grad) = 0;
  /// What an edge brings.
  virtual void OnEdge(bool output, size_t index, PyObject* grad) = 0;
};

/// A gradient that a call of a module receives (of an output) or passes on (of an input).
struct GradPort {
  std::shared_ptr<PortOwner> call;
  size_t index = 0;  // among the outputs, or the inputs, of the call
  bool is_output = false;
  Py_ssize_t number = 0;  // of the gradient among those of the node
  bool of_view = false;   // the node made the tensor of which that of the call is a view
};

struct NodeNotes {
  uint64_t id = 0;  // of all nodes, and of leaves
  std::vector<GradPort> ports;
  ModuleHook *before = nullptr, *after = nullptr;  // that run with the node, which has them
};

/// The notes of a node, which are made; null, with an error, where it takes none. They live as long as the node.
NodeNotes* NotesAt(PyObject* node, uint64_t sequence);
/// Null: it has none.
NodeNotes* FindNotes(PyObject* node, uint64_t sequence);

/// Of a tensor that has no node, for this step and while it lives.
NodeNotes* NotesOfLeaf(PyObject* tensor);
NodeNotes* FindNotesOfLeaf(PyObject* tensor);

}  // namespace msprobe
