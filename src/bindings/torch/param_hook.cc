#include "bindings/torch/param_hook.h"

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bindings/backward/node_hook.h"
#include "bindings/python/runtime.h"
#include "bindings/torch/backward_order.h"
#include "bindings/torch/leaf_memo.h"
#include "bindings/torch/torch_objects.h"

namespace msprobe {
namespace {

// A gradient of .grad, where the parameter has one of its own.
Ref GradientOf(PyObject* parameter) {
  Ref producer(PyObject_GetAttr(parameter, torch_names.grad_fn));
  Ref grad(producer.get() == Py_None ? PyObject_GetAttr(parameter, torch_names.grad) : nullptr);
  if (!grad) PyErr_Clear();
  return grad;
}

// FSDP2 calls the hooks of a shard itself, when its gradient was reduced.
bool IsRunByAccumulator(PyObject* parameter) {
  PyObject* current = torch_objects().current_node;
  if (current == nullptr) return true;  // an older release
  Ref node(PyObject_CallNoArgs(current));
  Ref variable(node ? PyObject_GetAttr(node.get(), node_names.variable) : nullptr);
  if (!variable) PyErr_Clear();
  return variable.get() == parameter;
}

// Holds no tensor but that of an accumulator: the tensor holds the hook, and what C++ holds no collector of cycles
// sees.
class ParamHook final : public NodeHook {
 public:
  ParamHook(ParamGradsPtr grads, const ParamPlace& place, PyObject* of_accumulator)
      : grads_(std::move(grads)),
        slot_(place.slot),
        name_(place.name),
        told_(place.told),
        of_accumulator_(Ref::Borrow(of_accumulator)) {}

  void Run(PyObject* const* args, Py_ssize_t count) override {
    if (t_flags.in_tool || count < 1) return;
    LeafMemo::OfThread().End();
    BackwardOrder::Get().Reach(sequence(), thread());
    if (!rt().running || !rt().options.modules || quiet_) return;  // an earlier start() may have been of another level
    InTool guard;
    PyObject* told = of_accumulator_ ? of_accumulator_.get() : args[0];
    const bool accumulated = told_ != ParamTold::kBeforeNode;
    if (accumulated && !of_accumulator_ && !IsRunByAccumulator(told)) return;
    if (!(accumulated ? TellsOf(told) : IsCalled())) return;
    grads_->Add(slot_, name_.c_str(), [&] { return accumulated ? GradientOf(told) : Ref::Borrow(told); });
  }

  bool IsFor(const ParamGradsPtr& grads, size_t slot) const { return grads_ == grads && slot_ == slot; }
  void Await(PyObject* parameter) const {
    if (!quiet_ && TellsOf(parameter)) grads_->Await(slot_);
  }
  bool IsCalled() const { return grads_->called == rt().generation; }
  void set_quiet(bool quiet) { quiet_ = quiet; }

 private:
  bool TellsOf(PyObject* parameter) const { return IsCalled() || !IsTiedToCalled(parameter); }
  bool IsTiedToCalled(PyObject* parameter) const;

  ParamGradsPtr grads_;
  size_t slot_;
  std::string name_;
  ParamTold told_;
  Ref of_accumulator_;
  bool quiet_ = false;
};

ParamHook* ParamHookOf(PyObject* object) { return dynamic_cast<ParamHook*>(HookIn(object)); }

// A weight of several modules is told by those that were called. When none was, somebody uses it past its module, and
// one of them tells it.
bool ParamHook::IsTiedToCalled(PyObject* parameter) const {
  Ref hooks(PyObject_GetAttr(parameter, torch_names.post_accumulate_grad_hooks));
  if (!hooks || !PyDict_Check(hooks.get())) return PyErr_Clear(), true;
  const ParamHook* first = nullptr;
  PyObject *id, *object;
  Py_ssize_t position = 0;
  while (PyDict_Next(hooks.get(), &position, &id, &object)) {
    const ParamHook* hook = ParamHookOf(object);
    if (hook == nullptr || hook->quiet_) continue;
    if (hook->IsCalled()) return true;
    if (first == nullptr) first = hook;
  }
  return first != this;
}

}  // namespace

PyObject* NewParamHook(ParamGradsPtr grads, const ParamPlace& place, PyObject* of_accumulator) {
  auto hook = std::make_unique<ParamHook>(grads, place, of_accumulator);
  ListParamGrads(grads);
  return NewHookObject(std::move(hook));
}

bool IsParamHook(PyObject* object) { return ParamHookOf(object) != nullptr; }

bool IsParamHookOf(PyObject* object, const ParamGradsPtr& grads, size_t slot) {
  const ParamHook* hook = ParamHookOf(object);
  return hook != nullptr && hook->IsFor(grads, slot);
}

void SetParamHookQuiet(PyObject* hook, bool quiet) { ParamHookOf(hook)->set_quiet(quiet); }

void ExpectGradient(PyObject* parameter, uint64_t sequence, uint64_t thread, bool accumulates) {
  Ref hooks(PyObject_GetAttr(parameter, torch_names.post_accumulate_grad_hooks));
  if (!hooks || !PyDict_Check(hooks.get())) return PyErr_Clear();
  PyObject *id, *object;
  Py_ssize_t position = 0;
  while (PyDict_Next(hooks.get(), &position, &id, &object)) {
    ParamHook* hook = ParamHookOf(object);
    if (hook == nullptr) continue;
    hook->set_sequence(sequence);
    hook->set_thread(thread);
    if (accumulates) hook->Await(parameter);
  }
}

}  // namespace msprobe
