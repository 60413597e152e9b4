#include "bindings/torch/param_hook.h"

#include <string>
#include <utility>

#include "bindings/backward/node_hook.h"
#include "bindings/python/runtime.h"
#include "bindings/torch/leaf_memo.h"
#include "bindings/torch/module_backward.h"
#include "bindings/torch/torch_objects.h"

namespace msprobe {
namespace {

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
    grads_->Add(parameter_.get(), name_.c_str(), [&] { return Gradient(); });
  }

  void set_thread(uint64_t thread) { thread_ = thread; }

 private:
  // Where parameters are views of a flat one (FSDP1) they have no gradient of their own, and asking for it warns.
  Ref Gradient() const {
    Ref producer(PyObject_GetAttr(parameter_.get(), torch_names.grad_fn));
    Ref grad(producer.get() == Py_None ? PyObject_GetAttr(parameter_.get(), torch_names.grad) : nullptr);
    if (!grad) PyErr_Clear();
    return grad;
  }

  ParamGradsPtr grads_;
  Ref parameter_;
  std::string name_;
  uint64_t thread_ = 0;  // of the forward that the sequence is from
};

}  // namespace

PyObject* NewParamHook(ParamGradsPtr grads, PyObject* parameter, const char* name) {
  auto hook = std::make_unique<ParamHook>(grads, parameter, name);
  ListParamGrads(grads);
  return NewHookObject(std::move(hook));
}

void SetParamHookSequence(PyObject* hook, uint64_t sequence) {
  auto* param = static_cast<ParamHook*>(HookOf(hook));
  param->set_sequence(sequence);
  param->set_thread(ThreadNumber());
}

}  // namespace msprobe
