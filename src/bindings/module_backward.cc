#include "bindings/module_backward.h"

#include <algorithm>
#include <utility>

#include "bindings/backward.h"
#include "bindings/runtime.h"
#include "bindings/values.h"

namespace msprobe {
namespace {

uint64_t next_serial = 0;

}  // namespace

ModuleBackward::ModuleBackward(OpName name, uint64_t first_sequence)
    : name_(name), generation_(rt().generation), serial_(next_serial++), first_(first_sequence) {}

bool ModuleBackward::Fresh() const { return generation_ == rt().generation && rt().running; }

void ModuleBackward::SetInputs(const std::vector<PyObject*>& tensors) {
  for (PyObject* tensor : tensors) {
    GradEdge edge = EdgeOf(tensor);
    const auto known = std::find(inputs_.begin(), inputs_.end(), edge);
    positions_.push_back(static_cast<size_t>(known - inputs_.begin()));
    if (known == inputs_.end()) inputs_.push_back(std::move(edge));
  }
  input_grads_.resize(inputs_.size());
}

void ModuleBackward::HookInputEdges(const std::vector<GradEdge>& outputs) {
  const Runtime& r = rt();
  std::vector<GradEdge> inputs = std::exchange(inputs_, {});
  if (inputs.empty() || outputs.empty() || r.options.structure || !r.options.backward || !r.options.output) return;
  std::vector<InputEdge> edges;
  GraphWalk::OfThread().FindEdges(outputs, first_, inputs, &edges);
  for (const InputEdge& edge : edges) {
    if (!*edge.hook) {
      Ref hook(NewEdgeHook(edge.sequence));
      Ref handle(hook ? PyObject_CallMethodOneArg(edge.node, names.register_hook, hook.get()) : nullptr);
      if (!handle) {
        NoteSkip("the backward of a module could not be hooked", name_.str() + ": " + TakeError());
        continue;
      }
      *edge.hook = std::move(hook);
    }
    AddInputEdge(edge.hook->get(), shared_from_this(), edge.slot, edge.input);
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
  outputs_wait_ = false;
  if (!Fresh()) return;
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
  if (!std::exchange(begun_, false) || !Fresh()) return;
  if (!inputs_recorded_) RecordInputGrads();
  AddParent(name_);
  if (Record* done = std::exchange(record_, nullptr); done != nullptr) {
    if (ShouldCollect(name_, Risk::kFocus)) {
      ++r.recorded;
      r.recorder->Commit(done);
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
  const auto later = [](const Turn& a, const Turn& b) {
    return std::pair(a.sequence, a.serial) < std::pair(b.sequence, b.serial);
  };
  turns_.insert(std::upper_bound(turns_.begin(), turns_.end(), turn, later), std::move(turn));
}

void BackwardOrder::RunLast() {
  Turn turn = std::move(turns_.back());
  turns_.pop_back();
  turn.begins ? turn.module->BeginWithOutputs() : turn.module->End();
}

void BackwardOrder::Reach(uint64_t sequence) {
  while (!turns_.empty() && turns_.back().sequence > sequence) RunLast();
}

void BackwardOrder::OnForward() {
  if (turns_.empty()) return;
  PyObject* current = rt().current_node;
  if (current == nullptr) return;  // an older release: told by the next node of the backward, or at stop()
  Ref node(PyObject_CallNoArgs(current));
  if (!node) return PyErr_Clear();
  node.get() == Py_None ? Finish() : Reach(SequenceOf(node.get()));
}

void BackwardOrder::Finish() {
  while (!turns_.empty()) RunLast();
}

}  // namespace msprobe
