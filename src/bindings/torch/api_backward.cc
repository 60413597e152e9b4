#include "bindings/torch/api_backward.h"

#include <utility>

#include "bindings/backward/node_hook.h"
#include "bindings/python/kept.h"
#include "bindings/python/name_counts.h"
#include "bindings/python/runtime.h"
#include "bindings/python/tensor_record.h"
#include "bindings/python/values.h"
#include "bindings/torch/backward_order.h"
#include "bindings/torch/leaf_memo.h"
#include "bindings/torch/torch_objects.h"

namespace msprobe {
namespace {

class ApiHook final : public NodeHook {
 public:
  ApiHook(const OpName& name, Risk risk, uint64_t sequence)
      : NodeHook(sequence), name_(name), generation_(rt().generation), risk_(risk) {}

  void Run(PyObject* const* args, Py_ssize_t count) override {
    if (t_flags.in_tool || count < 1) return;
    LeafMemo::OfThread().AtNode(LeafMemo::At::kFunction, sequence(), siblings());
    BackwardOrder::Get().Reach(sequence(), thread());
    if (count >= 2) RecordBackward(args[0], args[1]);
  }

 private:
  void RecordBackward(PyObject* grad_inputs, PyObject* grad_outputs) {
    Runtime& r = rt();
    if (!r.step_open || generation_ != r.generation || r.trigger.exhausted()) return;
    InTool guard;
    // A second pass through a graph that was kept is another call of the backward.
    OpName name = name_;
    name.index = CountsOf(name_.base)->NumberOfBackward(name_.index, !std::exchange(ran_, true));
    AddParent(name);
    if (!ShouldCollect(name, risk_) || r.options.structure || !r.options.backward) return;
    Record* record = r.recorder->Acquire(name);
    if (r.options.input) record->KeyLiteral("input"), RecordAsList(record, grad_outputs);
    if (r.options.output) record->KeyLiteral("output"), RecordAsList(record, grad_inputs);
    FinishRecord(record);
  }

  OpName name_;
  uint64_t generation_;
  Risk risk_;
  bool ran_ = false;
};

}  // namespace

void HookApiBackward(PyObject* output, const OpName& name, Risk risk) {
  PyObject* tensor = FirstTensor(output);
  if (tensor == nullptr || !AttrIsTrue(tensor, torch_names.requires_grad)) return;
  Ref node(PyObject_GetAttr(tensor, torch_names.grad_fn));
  if (!node) return PyErr_Clear();
  if (node.get() == Py_None || !torch_objects().Grad()) return;
  const uint64_t sequence = rt().options.modules ? SequenceOf(node.get()) : kNoSequence;
  Ref hook(NewHookObject(std::make_unique<ApiHook>(name, risk, sequence)));
  if (!hook) return PyErr_Clear();
  Ref handle(PyObject_CallMethodOneArg(node.get(), torch_names.register_hook, hook.get()));
  if (!handle) return NoteSkip("a backward could not be hooked", name.str() + ": " + TakeError());
  SetHandle(hook.get(), handle.get());
}

}  // namespace msprobe
