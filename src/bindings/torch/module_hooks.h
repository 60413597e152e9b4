// The hooks at nodes by which calls of modules learn their gradients.
#pragma once

#include "bindings/python/py.h"
#include "bindings/torch/node_notes.h"

namespace msprobe {

/// Tells `port`, an output, of what the node is about to receive. Several modules may return what one node made: the
/// outermost and the last comes first. False, with an error: the node takes no hook.
bool HookBefore(PyObject* node, uint64_t sequence, NodeNotes* notes, GradPort port);
/// The same by the tensor, where it has hooks already: what it receives before these change it.
bool HookFirst(PyObject* tensor, uint64_t sequence, const GradPort& port);
/// Tells `port` of the gradient of this number among those that the node has passed on; once, however often it is
/// asked. `thread`: that made the node; 0: not known.
bool HookAfter(PyObject* node, uint64_t sequence, uint64_t thread, NodeNotes* notes, const GradPort& port,
               Py_ssize_t slot);

}  // namespace msprobe
