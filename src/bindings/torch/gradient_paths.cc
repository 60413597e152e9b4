#include "bindings/torch/gradient_paths.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bindings/backward/graph_walk.h"
#include "bindings/python/runtime.h"
#include "bindings/torch/autograd_graph.h"
#include "bindings/torch/module_backward.h"
#include "bindings/torch/module_hooks.h"
#include "bindings/torch/param_hook.h"
#include "bindings/torch/torch_objects.h"

namespace msprobe {
namespace {

// An edge that ends at a port.
struct Use {
  PyObject* node;  // held by the walk; null: the pass begins there
  uint64_t sequence;
  Py_ssize_t slot;
  PyObject* given;  // where the pass begins
};

struct PortUses {
  GradPort port;
  uint64_t sequence = 0;  // of its node; that of a leaf is none
  const NodeNotes* notes = nullptr;
  std::vector<Use> uses;
  std::vector<Use> changes;    // work in place on it, a view: edges that end at the tensor of which it is one
  uint64_t base_sequence = 0;  // of the node that made that
};

ModuleBackward& CallOf(const GradPort& port) { return static_cast<ModuleBackward&>(*port.call); }

class Walk {
 public:
  void From(PyObject* root, PyObject* given);
  void Run();
  void Apply(bool accumulates);

 private:
  struct Node {
    Ref object;
    uint64_t sequence = 0;
    NodeNotes* notes = nullptr;
    Ref variable;  // of an accumulator
    uint64_t last_user = kNoSequence;
  };
  Node* Get(PyObject* object);
  void Note(const Node& target, Py_ssize_t number, const Use& use);
  void ApplyInput(const PortUses& input, size_t returned);
  void ApplyOutput(const PortUses& output);
  void Hook(const GradPort& port, const Use& use, bool elsewhere = false);
  bool MadeElsewhere(const PortUses& input, const Use& use);
  const std::vector<Node*>& UsersOf(PyObject* node);

  using PortKey = std::tuple<PortOwner*, bool, size_t>;
  std::unordered_map<PyObject*, Node> nodes_;  // while they are held an object stands for one node
  std::vector<Node*> todo_;
  std::map<PortKey, PortUses> ports_;
  bool several_threads_ = false;  // have made the graph
  std::unordered_map<PyObject*, std::vector<Node*>> users_;
};

Walk::Node* Walk::Get(PyObject* object) {
  const auto [at, fresh] = nodes_.try_emplace(object);
  Node* node = &at->second;
  if (!fresh) return node;
  node->object = Ref::Borrow(object);
  node->sequence = SequenceOf(object);
  if (node->sequence == kNoSequence) {
    node->variable = Ref(PyObject_GetAttr(object, node_names.variable));
    if (!node->variable) PyErr_Clear();
    if (node->variable) node->notes = FindNotesOfLeaf(node->variable.get());
  } else {
    node->notes = FindNotes(object, node->sequence);
  }
  todo_.push_back(node);
  return node;
}

void Walk::Note(const Node& target, Py_ssize_t number, const Use& use) {
  if (target.notes == nullptr) return;
  for (const GradPort& port : target.notes->ports) {
    if (port.number != number || !CallOf(port).Fresh()) continue;
    if (port.of_view && (use.node == nullptr || !IsCopySlices(use.node))) continue;
    PortUses& at = ports_[{port.call.get(), port.is_output, port.index}];
    if (port.of_view) {
      if (at.uses.empty()) at.port = port, at.sequence = target.sequence;
      at.base_sequence = target.sequence;
      at.changes.push_back(use);
      continue;
    }
    if (at.uses.empty()) at.port = port, at.sequence = target.sequence, at.notes = target.notes;
    at.uses.push_back(use);
  }
}

void Walk::From(PyObject* root, PyObject* given) {
  PyObject* object = nullptr;
  Py_ssize_t number = 0;
  Ref node;
  if (PyTuple_Check(root) && PyTuple_GET_SIZE(root) >= 2) {  // a GradientEdge
    object = PyTuple_GET_ITEM(root, 0);
    number = PyLong_AsSsize_t(PyTuple_GET_ITEM(root, 1));
  } else {
    TensorNode at = NodeOf(root);
    node = std::move(at.node);
    object = node.get();
    number = at.number;
  }
  PyErr_Clear();
  if (object == nullptr || object == Py_None) return;
  Note(*Get(object), number, {nullptr, kNoSequence, 0, given});
}

void Walk::Run() {
  while (!todo_.empty()) {
    Node* node = todo_.back();
    todo_.pop_back();
    Ref next(PyObject_GetAttr(node->object.get(), torch_names.next_functions));
    if (!next || !PyTuple_Check(next.get())) {
      PyErr_Clear();
      continue;
    }
    for (Py_ssize_t slot = 0; slot < PyTuple_GET_SIZE(next.get()); ++slot) {
      PyObject* pair = PyTuple_GET_ITEM(next.get(), slot);
      if (!PyTuple_Check(pair) || PyTuple_GET_SIZE(pair) != 2 || PyTuple_GET_ITEM(pair, 0) == Py_None) continue;
      Node* target = Get(PyTuple_GET_ITEM(pair, 0));
      target->last_user = std::min(target->last_user, node->sequence);
      // Within a thread what uses a tensor is younger than what made it.
      several_threads_ |= target->sequence != kNoSequence && node->sequence < target->sequence;
      if (target->notes == nullptr) continue;
      const Py_ssize_t number = PyLong_AsSsize_t(PyTuple_GET_ITEM(pair, 1));
      Note(*target, number, {node->object.get(), node->sequence, slot, nullptr});
    }
  }
}

void Walk::Hook(const GradPort& port, const Use& use, bool elsewhere) {
  if (use.node == nullptr) return;
  NodeNotes* notes = NotesAt(use.node, use.sequence);
  const uint64_t thread = elsewhere ? 0 : CallOf(port).thread();
  if (notes == nullptr || !HookAfter(use.node, use.sequence, thread, notes, port, use.slot)) {
    NoteSkip("the backward of a module could not be hooked", TakeError());
  }
}

const std::vector<Walk::Node*>& Walk::UsersOf(PyObject* object) {
  if (users_.empty()) {
    for (auto& [key, node] : nodes_) {
      Ref next(PyObject_GetAttr(key, torch_names.next_functions));
      const Py_ssize_t count = next && PyTuple_Check(next.get()) ? PyTuple_GET_SIZE(next.get()) : 0;
      for (Py_ssize_t i = 0; i < count; ++i)
        users_[PyTuple_GetItem(PyTuple_GET_ITEM(next.get(), i), 0)].push_back(&node);
    }
    PyErr_Clear();
  }
  return users_[object];
}

// Whether another thread made the node for the call, as far as the numbers tell: its number does not fit to that of the
// argument, and a node of the call is among those that use what it makes.
bool Walk::MadeElsewhere(const PortUses& input, const Use& use) {
  constexpr size_t kMost = 256;
  const ModuleBackward& call = CallOf(input.port);
  const bool between = use.sequence > input.sequence && call.IsOlder(use.sequence);
  if (!several_threads_ || between || input.sequence == kNoSequence) return false;
  std::vector<PyObject*> seen = {use.node};
  for (size_t i = 0; i < seen.size() && seen.size() < kMost; ++i) {
    for (const Node* user : UsersOf(seen[i])) {
      if (call.Made(user->sequence)) return true;
      PyObject* object = user->object.get();
      if (std::find(seen.begin(), seen.end(), object) == seen.end()) seen.push_back(object);
    }
  }
  return false;
}

void Walk::ApplyInput(const PortUses& input, size_t returned) {
  size_t edges = returned;
  for (const Use& use : input.uses) {
    if (use.node == nullptr) continue;
    const bool made = CallOf(input.port).Made(use.sequence);
    if (!made && !MadeElsewhere(input, use)) continue;
    ++edges;
    Hook(input.port, use, !made);
  }
  bool of_base = false;
  for (const Use& change : input.changes) {
    if (!CallOf(input.port).Made(change.sequence)) continue;
    ++edges;
    of_base = true;
    Hook(input.port, change);
  }
  CallOf(input.port).ExpectInput(input.port.index, edges, of_base);
}

// The next call of the module that gave the same tensor once more, which it had kept: who used it from there on has it
// from that call; null: there was none.
const ModuleBackward* NextGiver(const PortUses& output) {
  const ModuleBackward& call = CallOf(output.port);
  const ModuleBackward* next = nullptr;
  if (output.notes == nullptr) return nullptr;
  for (const GradPort& port : output.notes->ports) {
    const ModuleBackward& other = CallOf(port);
    const bool gives =
        port.is_output && !port.of_view && port.number == output.port.number && other.ArgumentOf(port.index) < 0;
    if (!gives || !other.Follows(call)) continue;
    if (next == nullptr || next->Follows(other)) next = &other;
  }
  return next;
}

// Who used it: nodes of the call itself do not count, nor those that had it before the call began.
void Walk::ApplyOutput(const PortUses& output) {
  ModuleBackward& call = CallOf(output.port);
  const bool old = call.IsOld(output.port.index);
  const ModuleBackward* next = NextGiver(output);
  std::vector<const Use*> behind;
  PyObject* given = nullptr;
  bool others = false, of_next = false;
  for (const Use& use : output.uses) {
    if (use.node == nullptr) {
      given = use.given;
      continue;
    }
    const bool is_next = next != nullptr && next->IsYounger(use.sequence);
    const bool counts = !call.Made(use.sequence) && !(old && call.IsOlder(use.sequence)) && !is_next;
    of_next |= is_next;
    others |= !counts;
    if (counts) behind.push_back(&use);
  }
  // Where the module returned a view of its argument, those who have that got the change, too.
  bool changed = false, argument_changed = false;
  for (const Use& change : output.changes) {
    if (call.Made(change.sequence) || call.IsOlder(change.sequence)) continue;
    behind.push_back(&change);
    changed = true;
    argument_changed = !old && !call.Made(output.base_sequence);
  }
  const bool unknown =
      (old && call.used_past() && behind.size() > 1) || (of_next && next->used_past()) || argument_changed;
  const bool whole = !others && !changed && output.sequence != kNoSequence;
  const OutputPath path = unknown ? OutputPath::kUnknown : whole ? OutputPath::kWhole : OutputPath::kByEdges;
  call.ExpectOutput(output.port.index, path, behind.size(), given, changed);
  if (path == OutputPath::kWhole) return;
  for (const Use* use : behind) Hook(output.port, *use);
}

void Walk::Apply(bool accumulates) {
  for (const auto& [key, uses] : ports_) CallOf(uses.port).ExpectNothing();
  std::map<std::pair<PortOwner*, size_t>, size_t> returned;  // arguments -> outputs that they are
  for (const auto& [key, uses] : ports_) {
    if (!uses.port.is_output) continue;
    ApplyOutput(uses);
    const int argument = CallOf(uses.port).ArgumentOf(uses.port.index);
    if (argument >= 0) ++returned[{uses.port.call.get(), static_cast<size_t>(argument)}];
  }
  for (const auto& [key, uses] : ports_) {
    if (uses.port.is_output) continue;
    const auto at = returned.find({uses.port.call.get(), uses.port.index});
    ApplyInput(uses, at == returned.end() ? 0 : at->second);
  }
  for (const auto& [object, node] : nodes_) {
    if (!node.variable) continue;
    ExpectGradient(node.variable.get(), node.last_user, several_threads_ ? 0 : ThreadNumber(), accumulates);
  }
}

// Of the call of the engine: (tensors, their gradients, keep_graph, create_graph, inputs, ...).
PyObject* Argument(const CallArgs& args, Py_ssize_t position, const char* keyword) {
  PyObject* found = args.kwargs != nullptr ? PyDict_GetItemString(args.kwargs, keyword) : nullptr;
  if (found == nullptr && args.tuple != nullptr && PyTuple_GET_SIZE(args.tuple) > position) {
    found = PyTuple_GET_ITEM(args.tuple, position);
  }
  return found != nullptr && PyTuple_Check(found) ? found : nullptr;
}

}  // namespace

void BeginPass(const CallArgs& args) {
  const Runtime& r = rt();
  if (!r.running || t_flags.in_tool || !r.options.modules || r.options.structure || !r.options.backward) return;
  PyObject* roots = Argument(args, 0, "tensors");
  PyObject* grads = Argument(args, 1, "grad_tensors");
  if (roots == nullptr) return;
  InTool guard;
  Walk walk;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(roots); ++i) {
    PyObject* given = grads != nullptr && i < PyTuple_GET_SIZE(grads) ? PyTuple_GET_ITEM(grads, i) : nullptr;
    walk.From(PyTuple_GET_ITEM(roots, i), given);
  }
  walk.Run();
  // Of a pass that is asked for the gradients of some tensors nothing is known of others.
  PyObject* inputs = Argument(args, 4, "inputs");
  walk.Apply(inputs == nullptr || PyTuple_GET_SIZE(inputs) == 0);
}
}  // namespace msprobe
