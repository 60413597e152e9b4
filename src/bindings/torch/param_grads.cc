#include "bindings/torch/param_grads.h"

#include <utility>
#include <vector>

#include "bindings/python/kept.h"
#include "bindings/python/runtime.h"
#include "bindings/python/tensor_record.h"
#include "bindings/python/values.h"
#include "bindings/torch/leaf_memo.h"
#include "bindings/torch/module_backward.h"
#include "bindings/torch/node_hook.h"
#include "bindings/torch/torch_objects.h"

namespace msprobe {
namespace {

std::vector<std::weak_ptr<ParamGrads>>& OpenGrads() {
  static auto* open = new std::vector<std::weak_ptr<ParamGrads>>;
  return *open;
}

class ParamHook final : public NodeHook {
 public:
  ParamHook(ParamGradsPtr grads, PyObject* parameter, const char* name)
      : grads_(std::move(grads)), parameter_(Ref::Borrow(parameter)), name_(name) {}

  void Run(PyObject* const*, Py_ssize_t count) override {
    if (t_flags.in_tool || count < 1) return;
    LeafMemo::OfThread().End();
    BackwardOrder::Get().ReachParameter(sequence(), thread_);
    if (!rt().running) return;
    InTool guard;
    grads_->Add(parameter_.get(), name_.c_str());
  }

  void set_thread(uint64_t thread) { thread_ = thread; }

 private:
  ParamGradsPtr grads_;
  Ref parameter_;
  std::string name_;
  uint64_t thread_ = 0;  // of the forward that the sequence is from
};

}  // namespace

void ParamGrads::Add(PyObject* parameter, const char* name) {
  Runtime& r = rt();
  const bool wanted = r.aside == 0 && called == r.generation && !r.options.structure && r.options.backward &&
                      (!r.filter.has_names() || r.filter.CheckName(OpName{base, 0, NameForm::kPlain}));
  // Read first, for another thread may bring the gradient of another parameter meanwhile.
  Record part;
  if (wanted) {
    // Where parameters are views of a flat one (FSDP1) they have no gradient of their own, and asking for it warns.
    Ref producer(PyObject_GetAttr(parameter, torch_names.grad_fn));
    Ref grad(producer.get() == Py_None ? PyObject_GetAttr(parameter, torch_names.grad) : nullptr);
    if (!grad) PyErr_Clear();
    if (r.recorder->save_policy().saves()) part.save = SaveMode::kDeferred;  // its name is known below
    part.Key(name);
    part.BeginList();
    RecordValue(&part, grad ? grad.get() : Py_None, nullptr, 1);
    part.EndList();
  }
  if (generation != r.generation) {
    generation = r.generation;
    seen = 0;
    record = nullptr;  // the recorder took it back at the end of its step
  } else if (first == parameter) {
    Finish();
  }
  if (!wanted) return;
  if (record == nullptr) {
    first = parameter;
    record = r.recorder->Acquire({base, counts->param_grads.Next(), NameForm::kParamGrad});
    record->keep_unfinished = !r.trigger.active();
  }
  record->Append(part);
  part.held.clear();
  if (record->save == SaveMode::kNow) SavePending(record);
  if (record->save == SaveMode::kNone) DropPending(record);
  if (++seen >= expected) Finish();
}

void ParamGrads::Finish() {
  seen = 0;
  if (record == nullptr || generation != rt().generation) return;
  InTool guard;
  FinishRecord(std::exchange(record, nullptr));
}

PyObject* NewParamHook(ParamGradsPtr grads, PyObject* parameter, const char* name) {
  auto hook = std::make_unique<ParamHook>(grads, parameter, name);
  if (!std::exchange(grads->listed, true)) OpenGrads().push_back(grads);
  return NewHookObject(std::move(hook));
}

void SetParamHookSequence(PyObject* hook, uint64_t sequence) {
  auto* param = static_cast<ParamHook*>(HookOf(hook));
  param->set_sequence(sequence);
  param->set_thread(ThreadNumber());
}

void FinishParamGrads() {
  auto& open = OpenGrads();
  std::erase_if(open, [](const std::weak_ptr<ParamGrads>& g) { return g.expired(); });
  for (const auto& weak : open) {
    if (auto grads = weak.lock()) grads->Finish();
  }
}

}  // namespace msprobe
