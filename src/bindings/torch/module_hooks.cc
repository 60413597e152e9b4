#include "bindings/torch/module_hooks.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "bindings/backward/node_hook.h"
#include "bindings/python/runtime.h"
#include "bindings/torch/backward_order.h"
#include "bindings/torch/leaf_memo.h"
#include "bindings/torch/torch_objects.h"

namespace msprobe {

struct HookedPort {
  GradPort port;
  Py_ssize_t slot;  // of the gradient among those that the hook is given
};

// Shared by all modules whose gradients are at this node.
class ModuleHook : public NodeHook {
 public:
  using NodeHook::NodeHook;

  std::vector<HookedPort> parts;

  void Run(PyObject* const* args, Py_ssize_t count) final {
    if (t_flags.in_tool || count < 1) return;
    AtNode(&LeafMemo::OfThread());
    // By index and held: a forward in another thread may add modules meanwhile.
    for (size_t i = 0; i < parts.size(); ++i) {
      const HookedPort part = parts[i];
      Tell(part.port, GradAt(args[0], part.slot));
    }
    BackwardOrder::Get().Reach(sequence(), thread());
  }

 private:
  virtual void AtNode(LeafMemo* memo) = 0;
  virtual void Tell(const GradPort& port, PyObject* grad) = 0;
};

namespace {

// Up to the node behind this one: a module that opens here may have called those whose turn comes between the two.
void ReachBehind(const NodeHook& hook) {
  const uint64_t sequence = hook.sequence();
  BackwardOrder::Get().Reach(sequence == kNoSequence ? sequence : sequence + 1, hook.thread());
}

class BeforeHook final : public ModuleHook {
 public:
  using ModuleHook::ModuleHook;

 private:
  // The node may change what it is given where it is, and tell nobody: what is read here is read again behind it.
  void AtNode(LeafMemo* memo) override {
    memo->End();
    ReachBehind(*this);
  }
  void Tell(const GradPort& port, PyObject* grad) override { port.call->OnOutputGrad(port.index, grad); }
};

class AfterHook final : public ModuleHook {
 public:
  using ModuleHook::ModuleHook;

 private:
  void AtNode(LeafMemo* memo) override {
    memo->AtNode(LeafMemo::At::kModules, sequence(), siblings());
    BackwardOrder::Get().Reach(sequence(), thread());
  }
  void Tell(const GradPort& port, PyObject* grad) override { port.call->OnEdge(port.is_output, port.index, grad); }
};

// Runs before the hooks of a tensor, with its gradient.
class FirstHook final : public NodeHook {
 public:
  FirstHook(uint64_t sequence, GradPort port) : NodeHook(sequence), port_(std::move(port)) {}

  void Run(PyObject* const* args, Py_ssize_t count) override {
    if (t_flags.in_tool || count < 1) return;
    LeafMemo::OfThread().End();
    ReachBehind(*this);
    port_.call->OnOutputGrad(port_.index, args[0]);
    BackwardOrder::Get().Reach(sequence(), thread());
  }

 private:
  GradPort port_;
};

template <typename Kind>
bool Register(PyObject* node, uint64_t sequence, PyObject* method, ModuleHook** place) {
  if (*place != nullptr) return true;
  auto made = std::make_unique<Kind>(sequence);
  ModuleHook* kept = made.get();
  Ref hook(NewHookObject(std::move(made)));
  Ref handle(hook ? PyObject_CallMethodOneArg(node, method, hook.get()) : nullptr);
  if (!handle) return false;
  SetHandle(hook.get(), handle.get());
  *place = kept;
  return true;
}

}  // namespace

bool HookBefore(PyObject* node, uint64_t sequence, NodeNotes* notes, GradPort port) {
  if (!Register<BeforeHook>(node, sequence, torch_names.register_prehook, &notes->before)) return false;
  auto& parts = notes->before->parts;
  const Py_ssize_t slot = port.number;
  parts.insert(parts.begin(), {std::move(port), slot});
  return true;
}

bool HookFirst(PyObject* tensor, uint64_t sequence, const GradPort& port) {
  static PyObject* const name = PyUnicode_InternFromString("_backward_hooks");
  Ref hooks(PyObject_GetAttr(tensor, name));
  Ref others(hooks && PyDict_Check(hooks.get()) ? PyDict_Copy(hooks.get()) : nullptr);
  if (!others) return false;
  Ref hook(NewHookObject(std::make_unique<FirstHook>(sequence, port)));
  Ref handle(hook ? PyObject_CallMethodOneArg(tensor, torch_names.register_hook, hook.get()) : nullptr);
  if (!handle) return false;
  // Autograd goes by the order in which they were put in.
  PyObject *key, *value;
  Py_ssize_t position = 0;
  while (PyDict_Next(others.get(), &position, &key, &value)) {
    if (PyObject_DelItem(hooks.get(), key) != 0 || PyObject_SetItem(hooks.get(), key, value) != 0) return false;
  }
  return true;
}

bool HookAfter(PyObject* node, uint64_t sequence, uint64_t thread, NodeNotes* notes, const GradPort& port,
               Py_ssize_t slot) {
  const bool fresh = notes->after == nullptr;
  if (!Register<AfterHook>(node, sequence, torch_names.register_hook, &notes->after)) return false;
  if (fresh) notes->after->set_thread(thread);
  auto& parts = notes->after->parts;
  const bool known = std::any_of(parts.begin(), parts.end(), [&](const HookedPort& p) {
    return p.slot == slot && p.port.call == port.call && p.port.index == port.index &&
           p.port.is_output == port.is_output;
  });
  if (!known) parts.push_back({port, slot});
  return true;
}

}  // namespace msprobe
