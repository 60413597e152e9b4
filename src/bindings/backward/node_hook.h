// Callables that autograd runs at its nodes.
#pragma once

#include <cstdint>

#include "bindings/backward/graph_walk.h"
#include "bindings/python/hook_object.h"
#include "bindings/python/py.h"
#include "bindings/python/runtime.h"

namespace msprobe {

class NodeHook : public Hook {
 public:
  NodeHook() = default;
  explicit NodeHook(uint64_t sequence) : sequence_(sequence) {}

  /// Arguments of autograd: before a node its grad_outputs, after it grad_inputs and grad_outputs. May throw.
  virtual void Run(PyObject* const* args, Py_ssize_t count) = 0;
  PyObject* Call(PyObject* const* args, Py_ssize_t count) final;

  uint64_t sequence() const { return sequence_; }
  /// That made the node, which gave it its number.
  uint64_t thread() const { return thread_; }
  void set_thread(uint64_t thread) { thread_ = thread; }
  void set_sequence(uint64_t sequence) { sequence_ = sequence; }
  /// Weak: the dict of the hooks that autograd runs together with this one.
  PyObject* siblings() const { return siblings_.get(); }
  void set_siblings(Ref dict) { siblings_ = std::move(dict); }

 private:
  uint64_t sequence_ = kNoSequence;  // of the node
  uint64_t thread_ = ThreadNumber();
  Ref siblings_;
};

bool IsNodeHook(PyObject* object);
/// Of an object that was made of a NodeHook.
NodeHook* HookOf(PyObject* object);
/// Of the function with which autograd puts a hook into the dict of a node, (dict or None, hook): the same for a hook
/// of ours, whose handle is a weak reference to the dict. Null without an error: a hook of others.
PyObject* PutIntoDict(PyObject* args);

/// Tells a hook which others run with it, by the handle of its registration.
void SetHandle(PyObject* hook, PyObject* handle);

/// The gradient of this number among those of a node; None when there is none.
PyObject* GradAt(PyObject* grads, Py_ssize_t number);

}  // namespace msprobe
