#include "bindings/monitor/torch/tap_call.h"

#include <utility>

#include "bindings/backward/node_hook.h"
#include "bindings/python/framework.h"
#include "bindings/python/runtime.h"
#include "bindings/python/tensor_record.h"
#include "bindings/torch/autograd_graph.h"
#include "bindings/torch/torch_objects.h"

namespace msprobe {
namespace {

// Of its own, not GraphWalk::OfThread(): that one's hooks are the recorder's.
struct Walk {
  GraphWalk walk;
};

struct Part {
  std::shared_ptr<TapCall> call;
  size_t position;
  Py_ssize_t slot;  // of the node's gradients
};

class EdgeTap final : public NodeHook {
 public:
  std::vector<Part> parts;
  // By index and held: what runs here may add modules.
  void Run(PyObject* const* args, Py_ssize_t count) override {
    const InTool guard;
    for (size_t i = 0; count > 0 && i < parts.size(); ++i) {
      const Part part = parts[i];
      part.call->InputGradient(part.position, GradAt(args[0], part.slot));
    }
  }
};

class OutputTap final : public NodeHook {
 public:
  std::vector<Part> parts;
  void Run(PyObject* const* args, Py_ssize_t count) override {
    const InTool guard;
    for (size_t i = 0; i < parts.size(); ++i) Part(parts[i]).call->PassBegins();  // which may add parts
    for (size_t i = 0; count > 0 && i < parts.size(); ++i) {
      const Part part = parts[i];
      part.call->OutputGradient(part.position, GradAt(args[0], part.slot));
    }
  }
};

template <typename Tap>
Tap* TapIn(PyObject* object) {
  return object != nullptr ? dynamic_cast<Tap*>(HookIn(object)) : nullptr;
}

}  // namespace

GraphWalk& TapWalk() { return PerThread<Walk>().walk; }

void TapCall::HookInputs(const std::vector<InputEdge>& edges, const std::vector<size_t>& positions) {
  for (const InputEdge& edge : edges) {
    if (done_) return;
    auto* tap = TapIn<EdgeTap>(edge.hook->get());
    if (tap == nullptr) {
      Ref hook(NewHookObject(std::make_unique<EdgeTap>()));
      Ref handle(hook ? PyObject_CallMethodOneArg(edge.node, torch_names.register_hook, hook.get()) : nullptr);
      if (!handle) {
        PyErr_Clear();
        continue;
      }
      tap = TapIn<EdgeTap>(hook.get());
      *edge.hook = std::move(hook);
    }
    tap->parts.push_back({shared_from_this(), positions[edge.input], edge.slot});
    ++inputs_[positions[edge.input]].edges;
    ++edges_;
  }
}

void TapCall::HookOutput(const GradEdge& edge, size_t position) {
  static PyObject* const metadata_name = PyUnicode_InternFromString("metadata");
  static PyObject* const mark = PyUnicode_InternFromString("msprobe.monitor");
  ++wanted_;
  Ref metadata(edge.node ? PyObject_GetAttr(edge.node.get(), metadata_name) : nullptr);
  Ref number(PyLong_FromSsize_t(edge.number));
  Ref key(number ? PyTuple_Pack(2, mark, number.get()) : nullptr);
  if (!metadata || !key || !PyDict_Check(metadata.get())) return PyErr_Clear();
  if (auto* known = TapIn<OutputTap>(PyDict_GetItemWithError(metadata.get(), key.get()))) {
    known->parts.insert(known->parts.begin(), {shared_from_this(), position, edge.number});
    return;
  }
  auto made = std::make_unique<OutputTap>();
  made->parts.push_back({shared_from_this(), position, edge.number});
  Ref hook(NewHookObject(std::move(made)));
  if (!hook || PyDict_SetItem(metadata.get(), key.get(), hook.get()) != 0) return PyErr_Clear();
  Ref handle(PyObject_CallMethodOneArg(edge.node.get(), torch_names.register_prehook, hook.get()));
  if (!handle) PyErr_Clear();
}

void TapCall::PassBegins() {
  if (!done_ && taps_->armed) taps_->PassBegins();
}

void TapCall::OutputGradient(size_t position, PyObject* gradient) {
  if (done_ || !taps_->armed) return;
  {
    const Busy busy(this);
    outputs_[position] = taps_->Read(gradient);
    if (!std::exchange(begun_, true)) taps_->Begun(shared_from_this());
    if (wanted_ > 0) --wanted_;
  }
  if (edges_ == 0 && wanted_ == 0) Finish();
}

void TapCall::InputGradient(size_t position, PyObject* gradient) {
  if (done_ || !taps_->armed) return;
  {
    const Busy busy(this);
    Input& input = inputs_[position];
    const bool last = ++input.seen == input.edges;
    if (last && input.edges == 1) {
      input.gradient = taps_->Read(gradient);
    } else {
      if (gradient != Py_None) AddTo(&input, gradient);
      if (last) Close(&input);
    }
    ++seen_;
  }
  if (seen_ == edges_) Finish();
}

void TapCall::AddTo(Input* input, PyObject* gradient) {
  Ref& sum = input->gradient.tensor;
  TensorLook look;
  if (!sum && IsPlainTensor(gradient) && framework().LookAt(gradient, &look) && input->sum.Add(look)) return;
  if (!input->sum.empty()) {
    input->lost = true;
    return;
  }
  if (!sum) {
    sum = Ref::Borrow(gradient);
    return;
  }
  const InTool guard;
  Ref one(sum), other(Ref::Borrow(gradient));
  if (torch_objects().Grad()) {
    // A backward pass that is itself differentiated must not grow by what is added here.
    one = Ref(PyObject_CallMethodNoArgs(sum.get(), torch_names.detach));
    other = Ref(PyObject_CallMethodNoArgs(gradient, torch_names.detach));
  }
  Ref added;
  if (one && other) {
    added = Ref(input->summed ? PyNumber_InPlaceAdd(one.get(), other.get()) : PyNumber_Add(one.get(), other.get()));
  }
  if (!added) return PyErr_Clear();
  sum = std::move(added);
  input->summed = true;
}

void TapCall::Close(Input* input) {
  if (!input->sum.empty()) {
    if (!input->lost) input->gradient.reading = taps_->ReadMemory(input->sum.view());
    input->sum = {};
  } else if (input->gradient.tensor) {
    const Ref tensor = std::exchange(input->gradient.tensor, {});
    input->gradient = taps_->Read(tensor.get());
  }
}

void TapCall::Finish() {
  if (done_ || busy_ > 0 || !taps_->armed) return;
  done_ = true;
  const std::shared_ptr<TapCall> held = shared_from_this();
  std::vector<TapGradient> inputs;
  for (Input& input : inputs_) {
    Close(&input);  // where a part never came
    inputs.push_back(std::move(input.gradient));
  }
  const std::vector<TapGradient> outputs = std::exchange(outputs_, {});
  inputs_.clear();
  taps_->TakeGradients(site_, inputs, outputs);
  taps_->Forget(this);
}

}  // namespace msprobe
