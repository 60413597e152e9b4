#include "bindings/backward/graph_walk.h"

#include <algorithm>
#include <functional>
#include <string_view>

namespace msprobe {

uint64_t AsSequence(PyObject* number) {
  if (number == nullptr) {
    PyErr_Clear();
    return kNoSequence;
  }
  const uint64_t value = PyLong_AsUnsignedLongLong(number);
  if (PyErr_Occurred()) {
    PyErr_Clear();
    return kNoSequence;
  }
  return value;
}

GradNodeNames node_names;

namespace {

// Numbers of all threads are one row there, and no two accumulators have one name.
uintptr_t KeyOfNumber(PyObject* node) {
  constexpr uintptr_t named = uintptr_t{1} << 63;
  if (const uint64_t sequence = SequenceOf(node); sequence != kNoSequence) return sequence & ~named;
  Ref name(PyObject_CallMethodNoArgs(node, node_names.name));
  const char* text = name && PyUnicode_Check(name.get()) ? PyUnicode_AsUTF8(name.get()) : nullptr;
  PyErr_Clear();
  return std::hash<std::string_view>()(text == nullptr ? "" : text) | named;
}

}  // namespace

uintptr_t NodeKey(PyObject* node) {
  if (node_names.unique_id == nullptr) return reinterpret_cast<uintptr_t>(node);
  static const bool has_id = PyObject_HasAttr(node, node_names.unique_id) == 1;
  if (!has_id) return KeyOfNumber(node);
  Ref id(PyObject_CallMethodNoArgs(node, node_names.unique_id));
  const uint64_t key = id ? PyLong_AsUnsignedLongLongMask(id.get()) : 0;
  if (PyErr_Occurred()) PyErr_Clear();
  return key;
}

uint64_t SequenceOf(PyObject* node) {
  Ref number(PyObject_CallMethodNoArgs(node, node_names.sequence_nr));
  return AsSequence(number.get());
}

GraphWalk& GraphWalk::OfThread() { return PerThread<GraphWalk>(); }

void GraphWalk::Forget() {
  // Freeing a graph may run code of the user, which may call modules.
  auto nodes = std::exchange(nodes_, {});
  most_nodes_ = std::max(most_nodes_, nodes.size());
}

GraphWalk::Node* GraphWalk::Get(PyObject* object, uintptr_t key) {
  if (const auto known = nodes_.find(key); known != nodes_.end()) return known->second.get();
  if (nodes_.empty()) nodes_.reserve(most_nodes_);  // the next step is like the last
  auto node = std::make_unique<Node>();
  node->object = Ref::Borrow(object);
  node->key = key;
  node->sequence = SequenceOf(object);
  return nodes_.emplace(key, std::move(node)).first->second.get();
}

void GraphWalk::Expand(Node* node) {
  node->expanded = true;
  Ref next(PyObject_GetAttr(node->object.get(), node_names.next_functions));
  if (!next || !PyTuple_Check(next.get())) return PyErr_Clear();
  const Py_ssize_t count = PyTuple_GET_SIZE(next.get());
  node->next.reserve(static_cast<size_t>(count));
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* pair = PyTuple_GET_ITEM(next.get(), i);
    PyObject* target = PyTuple_Check(pair) && PyTuple_GET_SIZE(pair) == 2 ? PyTuple_GET_ITEM(pair, 0) : Py_None;
    Py_ssize_t number = 0;
    if (target != Py_None) number = PyLong_AsSsize_t(PyTuple_GET_ITEM(pair, 1));
    if (PyErr_Occurred()) PyErr_Clear();
    node->next.emplace_back(target == Py_None ? nullptr : Get(target, NodeKey(target)), number);
  }
}

void GraphWalk::FindEdges(const std::vector<GradEdge>& outputs, uint64_t since, const std::vector<GradEdge>& inputs,
                          std::vector<InputEdge>* found) {
  ++visit_;
  todo_.clear();  // left by a search that found no memory
  auto reach = [&](Node* node) {
    // An accumulator leads nowhere; what is older was there before the call.
    if (node->visit == visit_ || node->sequence < since || node->sequence == kNoSequence) return;
    node->visit = visit_;
    todo_.push_back(node);
  };
  for (const GradEdge& input : inputs) {
    if (input.node) Get(input.node.get(), input.key)->input_visit = visit_;
  }
  for (const GradEdge& output : outputs) {
    if (output.node) reach(Get(output.node.get(), output.key));
  }
  while (!todo_.empty()) {
    Node* node = todo_.back();
    todo_.pop_back();
    if (!node->expanded) Expand(node);
    for (size_t slot = 0; slot < node->next.size(); ++slot) {
      auto [target, number] = node->next[slot];
      if (target == nullptr) continue;
      reach(target);
      if (target->input_visit != visit_) continue;
      for (size_t input = 0; input < inputs.size(); ++input) {
        if (inputs[input].key != target->key || inputs[input].number != number) continue;
        found->push_back({node->object.get(), &node->hook, node->sequence, static_cast<Py_ssize_t>(slot), input});
        break;
      }
    }
  }
}

}  // namespace msprobe
