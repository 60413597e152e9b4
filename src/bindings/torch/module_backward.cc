#include "bindings/torch/module_backward.h"

#include <algorithm>
#include <utility>

#include "bindings/backward/node_hook.h"
#include "bindings/python/kept.h"
#include "bindings/python/runtime.h"
#include "bindings/python/values.h"
#include "bindings/torch/leaf_memo.h"
#include "bindings/torch/torch_objects.h"

namespace msprobe {
namespace {

uint64_t next_serial = 0;

struct ModulePart {
  ModuleBackwardPtr backward;
  Py_ssize_t number;  // of the gradient among those of the node
  size_t input;
};

// A hook of modules: several may share a node.
class ModuleHook : public NodeHook {
 public:
  using NodeHook::NodeHook;

  std::vector<ModulePart> parts;

  void Run(PyObject* const* args, Py_ssize_t count) final {
    if (t_flags.in_tool || count < 1) return;
    AtNode(&LeafMemo::OfThread());
    BackwardOrder::Get().Reach(sequence());
    // By index and held: a forward in another thread may add modules meanwhile.
    for (size_t i = 0; i < parts.size(); ++i) {
      const ModulePart part = parts[i];
      RunPart(part, args[0]);
    }
  }

 private:
  virtual void AtNode(LeafMemo* memo) = 0;
  virtual void RunPart(const ModulePart& part, PyObject* grads) = 0;
};

class OutputHook final : public ModuleHook {
 public:
  using ModuleHook::ModuleHook;

 private:
  void AtNode(LeafMemo* memo) override { memo->AtNode(LeafMemo::At::kBeforeNode, sequence(), siblings()); }
  void RunPart(const ModulePart& part, PyObject* grads) override {
    if (PyObject* grad = GradAt(grads, part.number); grad != Py_None) part.backward->Begin(grad, sequence());
  }
};

class OneOutputHook final : public ModuleHook {
 public:
  using ModuleHook::ModuleHook;

 private:
  void AtNode(LeafMemo* memo) override { memo->End(); }
  void RunPart(const ModulePart& part, PyObject* grads) override {
    part.backward->OnOutputGrad(static_cast<size_t>(part.number), GradAt(grads, 0));
  }
};

class EdgeHook final : public ModuleHook {
 public:
  using ModuleHook::ModuleHook;

 private:
  void AtNode(LeafMemo* memo) override { memo->AtNode(LeafMemo::At::kModules, sequence(), siblings()); }
  void RunPart(const ModulePart& part, PyObject* grads) override {
    part.backward->OnInputGrad(part.input, GradAt(grads, part.number));
  }
};

// Told by autograd when the pass of this number is over.
class EndOfPassHook final : public NodeHook {
 public:
  explicit EndOfPassHook(int64_t pass) : pass_(pass) {}
  void Run(PyObject* const*, Py_ssize_t count) override {
    BackwardOrder::Get().EndPass(pass_);
    if (!t_flags.in_tool && count >= 1) LeafMemo::OfThread().End();
  }

 private:
  int64_t pass_;
};

ModuleHook* ModuleHookOf(PyObject* hook) { return static_cast<ModuleHook*>(HookOf(hook)); }

template <typename Hook>
PyObject* NewModuleHook(ModuleBackwardPtr backward, Py_ssize_t number, uint64_t sequence) {
  auto hook = std::make_unique<Hook>(sequence);
  hook->parts.push_back({std::move(backward), number, 0});
  return NewHookObject(std::move(hook));
}

}  // namespace

PyObject* NewOutputHook(ModuleBackwardPtr backward, Py_ssize_t number, uint64_t sequence) {
  return NewModuleHook<OutputHook>(std::move(backward), number, sequence);
}

void AddOuterModule(PyObject* output_hook, ModuleBackwardPtr backward, Py_ssize_t number) {
  auto& parts = ModuleHookOf(output_hook)->parts;
  parts.insert(parts.begin(), {std::move(backward), number, 0});
}

PyObject* NewOneOutputHook(ModuleBackwardPtr backward, size_t output, uint64_t sequence) {
  return NewModuleHook<OneOutputHook>(std::move(backward), static_cast<Py_ssize_t>(output), sequence);
}

ModuleBackward::ModuleBackward(OpName name, uint64_t first_sequence)
    : name_(name),
      generation_(rt().generation),
      serial_(next_serial++),
      thread_(ThreadNumber()),
      first_(first_sequence) {}

bool ModuleBackward::Fresh() const { return generation_ == rt().generation && (rt().running || t_flags.finishing); }

// What never comes to its end must not keep gradients for as long as the graph lives.
void ModuleBackward::LetGo() {
  begun_ = outputs_wait_ = false;
  record_ = nullptr;  // the recorder's
  for (Ref& grad : input_grads_) grad = Ref();
  for (Ref& grad : output_grads_) grad = Ref();
}

void ModuleBackward::SetInputs(const std::vector<PyObject*>& tensors) {
  std::vector<GradEdge> inputs;
  std::vector<size_t> positions;
  for (PyObject* tensor : tensors) {
    GradEdge edge = EdgeOf(tensor);
    const auto known = std::find(inputs.begin(), inputs.end(), edge);
    positions.push_back(static_cast<size_t>(known - inputs.begin()));
    if (known == inputs.end()) inputs.push_back(std::move(edge));
  }
  // Without memory for all of them the module has no inputs: hooks and positions index the gradients.
  input_grads_.resize(inputs.size());
  inputs_ = std::move(inputs);
  positions_ = std::move(positions);
}

void ModuleBackward::HookInputEdges(const std::vector<GradEdge>& outputs) {
  const Runtime& r = rt();
  std::vector<GradEdge> inputs = std::exchange(inputs_, {});
  if (inputs.empty() || outputs.empty() || r.options.structure || !r.options.backward || !r.options.output) return;
  std::vector<InputEdge> edges;
  GraphWalk::OfThread().FindEdges(outputs, first_, inputs, &edges);
  for (const InputEdge& edge : edges) {
    if (!*edge.hook) {
      Ref hook(NewHookObject(std::make_unique<EdgeHook>(edge.sequence)));
      Ref handle(hook ? PyObject_CallMethodOneArg(edge.node, torch_names.register_hook, hook.get()) : nullptr);
      if (!handle) {
        NoteSkip("the backward of a module could not be hooked", name_.str() + ": " + TakeError());
        continue;
      }
      SetHandle(hook.get(), handle.get());
      *edge.hook = std::move(hook);
    }
    ModuleHookOf(edge.hook->get())->parts.push_back({shared_from_this(), edge.slot, edge.input});
    ++edges_;
  }
}

void ModuleBackward::OnOutputGrad(size_t output, PyObject* grad) {
  if (!Fresh() || output >= output_grads_.size() || grad == Py_None) return;
  output_grads_[output] = Ref::Borrow(grad);
  if (std::exchange(outputs_wait_, true)) return;
  BackwardOrder::Get().Add({last_, serial_, shared_from_this(), true});
}

void ModuleBackward::BeginWithOutputs() {
  if (!Fresh()) return LetGo();
  outputs_wait_ = false;
  std::vector<Ref> grads(output_grads_.size());
  grads.swap(output_grads_);
  BeginWith(grads, last_);
}

void ModuleBackward::Begin(PyObject* grad, uint64_t sequence) {
  if (Fresh()) BeginWith({Ref::Borrow(grad)}, sequence);
}

void ModuleBackward::BeginWith(const std::vector<Ref>& grads, uint64_t sequence) {
  Runtime& r = rt();
  if (begun_) End();  // a second pass through a graph that was kept
  begun_ = true;
  seen_ = 0;
  inputs_recorded_ = false;
  {
    InTool guard;
    {
      auto lock = r.recorder->lock();
      r.recorder->construct().BeginModule(name_);
    }
    r.filter.BeginModule(name_);
    if (!r.options.structure && r.options.backward) {
      record_ = r.recorder->Acquire(name_);
      if (r.options.input) {
        record_->KeyLiteral("input");
        record_->BeginList();
        for (const Ref& grad : grads) RecordValue(record_, grad ? grad.get() : Py_None, nullptr, 1);
        record_->EndList();
      }
    }
  }
  if (passes_through_ >= 0 && grads.size() == 1) {
    input_grads_[static_cast<size_t>(passes_through_)] = grads[0];
    return End();
  }
  // A node from before the forward: the module has no node of its own.
  if (positions_.empty() || sequence < first_) return End();
  BackwardOrder::Get().Add({first_, serial_, shared_from_this(), false});
}

void ModuleBackward::OnInputGrad(size_t input, PyObject* grad) {
  if (!begun_ || inputs_recorded_ || !Fresh()) return;
  ++seen_;
  if (grad != Py_None) {
    Ref& sum = input_grads_[input];
    if (!sum) {
      sum = Ref::Borrow(grad);
    } else {
      InTool guard;
      Ref added(PyNumber_Add(sum.get(), grad));
      if (!added) NoteSkip("gradients of an input could not be added", name_.str() + ": " + TakeError());
      if (added) sum = std::move(added);
    }
  }
  // Statistics now, so that no gradient lives longer than it has to.
  if (seen_ == edges_) RecordInputGrads();
}

void ModuleBackward::RecordInputGrads() {
  inputs_recorded_ = true;
  if (record_ != nullptr && rt().options.output) {
    InTool guard;
    record_->KeyLiteral("output");
    record_->BeginList();
    for (const size_t position : positions_) {
      const Ref& grad = input_grads_[position];
      RecordValue(record_, grad ? grad.get() : Py_None, nullptr, 1);
    }
    record_->EndList();
  }
  for (Ref& grad : input_grads_) grad = Ref();
}

void ModuleBackward::End() {
  Runtime& r = rt();
  if (!begun_) return;
  if (!Fresh()) return LetGo();
  begun_ = false;
  if (!inputs_recorded_) RecordInputGrads();
  AddParent(name_);
  if (Record* done = std::exchange(record_, nullptr); done != nullptr) {
    if (ShouldCollect(name_, Risk::kFocus)) {
      FinishRecord(done);
    } else {
      r.recorder->Discard(done);
    }
  }
  {
    auto lock = r.recorder->lock();
    r.recorder->construct().EndModule(name_);
  }
  r.filter.EndModule(name_);
}

BackwardOrder& BackwardOrder::Get() {
  static auto* order = new BackwardOrder;  // never destroyed: it holds Python objects
  return *order;
}

void BackwardOrder::Add(Turn turn) {
  const TorchObjects& o = torch_objects();
  if (o.at_end_of_pass != nullptr) {
    Ref pass(PyObject_CallNoArgs(o.current_pass));
    turn.pass = pass ? PyLong_AsLongLong(pass.get()) : -1;
    if (turn.pass >= 0 && passes_.insert(turn.pass).second) {
      Ref hook(NewHookObject(std::make_unique<EndOfPassHook>(turn.pass)));
      Ref done(hook ? PyObject_CallOneArg(o.at_end_of_pass, hook.get()) : nullptr);
    }
    PyErr_Clear();  // told by the next op, or at stop()
  }
  const auto later = [](const Turn& a, const Turn& b) {
    return std::pair(a.sequence, a.serial) < std::pair(b.sequence, b.serial);
  };
  Turns& turns = turns_[ThreadNumber()];
  turns.insert(std::upper_bound(turns.begin(), turns.end(), turn, later), std::move(turn));
  ++waiting_;
}

// Of this thread's turns that are `wanted` the next. They may change while one runs.
template <typename Wanted>
bool BackwardOrder::RunLast(uint64_t thread, Wanted wanted) {
  const auto mine = turns_.find(thread);
  if (mine == turns_.end()) return false;
  Turns& turns = mine->second;
  const auto found = std::find_if(turns.rbegin(), turns.rend(), wanted);
  if (found == turns.rend()) return false;
  const Turn turn = std::move(*found);
  turns.erase(std::next(found).base());
  if (turns.empty()) turns_.erase(mine);
  --waiting_;
  turn.begins ? turn.module->BeginWithOutputs() : turn.module->End();
  return true;
}

void BackwardOrder::Reach(uint64_t sequence, uint64_t thread) {
  if (waiting_ == 0) return;
  int64_t pass = -1;
  if (torch_objects().at_end_of_pass != nullptr) {
    Ref current(PyObject_CallNoArgs(torch_objects().current_pass));
    pass = current ? PyLong_AsLongLong(current.get()) : -1;
    PyErr_Clear();
  }
  const auto before = [&](const Turn& t) {
    return t.sequence > sequence && t.pass == pass && (thread == 0 || thread == t.module->thread_);
  };
  while (RunLast(ThreadNumber(), before)) {
  }
}

void BackwardOrder::OnForward() {
  if (waiting_ == 0) return;
  PyObject* current = torch_objects().current_node;
  if (current == nullptr) return;  // an older release: told by the next node of the backward, or at stop()
  Ref node(PyObject_CallNoArgs(current));
  if (!node) return PyErr_Clear();
  if (node.get() != Py_None) return Reach(SequenceOf(node.get()));
  const uint64_t thread = ThreadNumber();
  while (RunLast(thread, [](const Turn&) { return true; })) {
  }
}

void BackwardOrder::EndPass(int64_t pass) {
  passes_.erase(pass);
  std::vector<uint64_t> threads;
  for (const auto& [thread, turns] : turns_) threads.push_back(thread);
  for (const uint64_t thread : threads) {
    while (RunLast(thread, [&](const Turn& t) { return t.pass == pass; })) {
    }
  }
}

void BackwardOrder::Finish() {
  while (!turns_.empty()) {
    const auto first = turns_.begin();
    if (first->second.empty()) {
      turns_.erase(first);
    } else {
      Shielded([&] { RunLast(first->first, [](const Turn&) { return true; }); });
    }
  }
  passes_.clear();
}

}  // namespace msprobe
