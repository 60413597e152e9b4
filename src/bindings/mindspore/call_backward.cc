#include "bindings/mindspore/call_backward.h"

#include <algorithm>
#include <utility>

#include "bindings/backward/node_hook.h"
#include "bindings/mindspore/mindspore_objects.h"
#include "bindings/mindspore/tensors.h"
#include "bindings/python/kept.h"
#include "bindings/python/runtime.h"
#include "bindings/python/tensor_record.h"
#include "bindings/python/values.h"

namespace msprobe {
namespace {

constexpr int kMaxDepth = 32;
constexpr const char* kReturned = "a Cell returns an argument as it came";
constexpr const char* kAtSeveralPlaces =
    "one tensor stands at several places of a call, and nothing tells their shares";

// One more than the number of the last node that this thread is known to have made. Numbers only grow.
thread_local uint64_t t_next_sequence = 0;

std::vector<CallBackwardPtr>& OpenBackwards() {
  static auto* open = new std::vector<CallBackwardPtr>;  // under the GIL
  return *open;
}

// Whether anything will be differentiated by it.
bool HasNumbers(PyObject* tensor) {
  Ref dtype(PyObject_GetAttr(tensor, mindspore_names.dtype));
  Ref text(dtype ? PyObject_Str(dtype.get()) : nullptr);
  PyErr_Clear();
  const DType type = ParseDType(TextOf(text.get()));
  return IsFloating(type) || IsComplex(type) || type == DType::kUnknown;
}

// Empty for a tensor that gets no gradient.
GradEdge EdgeOfTensor(PyObject* tensor) {
  GradEdge edge;
  Ref node(PyObject_GetAttr(tensor, mindspore_names.grad_node));
  if (!node || node.get() == Py_None) return PyErr_Clear(), edge;
  Ref number(PyObject_GetAttr(tensor, mindspore_names.output_index));
  edge.number = number ? PyLong_AsSsize_t(number.get()) : 0;
  PyErr_Clear();
  edge.key = NodeKey(node.get());
  edge.node = std::move(node);
  return edge;
}

void CollectTensors(PyObject* value, std::vector<PyObject*>* out, int depth = 0) {
  if (IsTensor(value)) {
    out->push_back(value);
  } else if (depth < kMaxDepth && (PyTuple_Check(value) || PyList_Check(value))) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(value); ++i) {
      CollectTensors(PySequence_Fast_GET_ITEM(value, i), out, depth + 1);
    }
  }
}

// Tensors that are attributes, or stand in a short list that is one.
void CollectAttributes(PyObject* attributes, std::vector<PyObject*>* out) {
  constexpr Py_ssize_t kMost = 64;
  PyObject *name, *value;
  Py_ssize_t position = 0;
  while (PyDict_Next(attributes, &position, &name, &value)) {
    if (IsTensor(value)) out->push_back(value);
    if (!PyTuple_CheckExact(value) && !PyList_CheckExact(value)) continue;
    const Py_ssize_t count = PySequence_Fast_GET_SIZE(value);
    for (Py_ssize_t i = 0; count <= kMost && i < count; ++i) {
      if (PyObject* item = PySequence_Fast_GET_ITEM(value, i); IsTensor(item)) out->push_back(item);
    }
  }
}

struct OutputPart {
  CallBackwardPtr call;
  Py_ssize_t number;  // of the gradient among those that the node receives
  size_t output;
};
struct InputPart {
  CallBackwardPtr call;
  Py_ssize_t slot;  // of the gradient among those that the node passes on
  size_t input;
};

// Runs when its node has run. The engine asks for the interpreter once, for all the calls.
class CallHook final : public NodeHook {
 public:
  using NodeHook::NodeHook;
  std::vector<OutputPart> outputs;  // inner calls first
  std::vector<InputPart> inputs;

  void Run(PyObject* const* args, Py_ssize_t count) override {
    if (t_flags.in_tool || count < 2 || !rt().step_open) return;
    InTool guard;
    const GradientsLater later;
    WatchPass();
    // By index and held: a forward in another thread may add calls meanwhile.
    for (size_t i = outputs.size(); i-- > 0;) {
      const OutputPart part = outputs[i];
      part.call->OnOutputGrad(part.output, GradAt(args[1], part.number));
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      const InputPart part = inputs[i];
      // Below zero: what is passed on is what comes.
      part.call->OnInputGrad(part.input, part.slot < 0 ? GradAt(args[1], -1 - part.slot) : GradAt(args[0], part.slot));
    }
  }

 private:
  static void WatchPass();
};

class EndOfPassHook final : public NodeHook {
 public:
  void Run(PyObject* const*, Py_ssize_t) override;
};

bool pass_is_watched = false;  // under the GIL

void CallHook::WatchPass() {
  if (pass_is_watched) return;
  Ref hook(NewHookObject(std::make_unique<EndOfPassHook>()));
  Ref done(hook ? PyObject_CallOneArg(mindspore_objects().at_end_of_pass, hook.get()) : nullptr);
  pass_is_watched = static_cast<bool>(done);
  PyErr_Clear();  // told at stop()
}

void EndOfPassHook::Run(PyObject* const*, Py_ssize_t) {
  pass_is_watched = false;
  FinishOpenBackwards();
  ReadAfterBackward();
}

CallHook* HookAt(const GradEdge& edge) {
  Ref* place = GraphWalk::OfThread().HookPlace(edge);
  if (!*place) {
    Ref hook(NewHookObject(std::make_unique<CallHook>()));
    Ref handle(hook ? PyObject_CallMethodOneArg(edge.node.get(), mindspore_names.register_hook, hook.get()) : nullptr);
    if (!handle) return nullptr;
    *place = std::move(hook);
  }
  return static_cast<CallHook*>(HookOf(place->get()));
}

}  // namespace

CallBackward::CallBackward(const std::vector<PyObject*>& arguments)
    : generation_(rt().generation), since_(t_next_sequence) {
  bool numbers = false;
  for (PyObject* argument : arguments) {
    if (!IsTensor(argument)) continue;
    numbers |= HasNumbers(argument);
    GradEdge edge = EdgeOfTensor(argument);
    if (!edge.node) {
      positions_.push_back(-1);
      continue;
    }
    if (const uint64_t sequence = SequenceOf(edge.node.get()); sequence != kNoSequence) {
      since_ = std::max(since_, sequence + 1);
    }
    const auto known = std::find(inputs_.begin(), inputs_.end(), edge);
    positions_.push_back(static_cast<int>(known - inputs_.begin()));
    if (known == inputs_.end()) inputs_.push_back(std::move(edge));
  }
  if (!numbers) positions_.clear();  // indices, masks
}

void CallBackward::AddKept(PyObject* cell, const std::vector<GradEdge>& inner) {
  static PyObject* const dict = PyUnicode_InternFromString("__dict__");
  kept_ = inner;
  Ref attributes(PyObject_GetAttr(cell, dict));
  if (!attributes || !PyDict_Check(attributes.get())) return PyErr_Clear();
  std::vector<PyObject*> tensors;
  CollectAttributes(attributes.get(), &tensors);
  for (PyObject* tensor : tensors) {
    GradEdge edge = AttrIsTrue(tensor, mindspore_names.requires_grad) ? EdgeOfTensor(tensor) : GradEdge();
    const uint64_t sequence = edge.node ? SequenceOf(edge.node.get()) : kNoSequence;
    // That of an earlier call is older.
    if (sequence != kNoSequence && sequence >= since_) kept_.push_back(std::move(edge));
  }
}

void CallBackward::Hook(PyObject* output, const OpName& name, Risk risk, const OpName& parent, bool only_gradients) {
  name_ = name;
  parent_ = parent;
  risk_ = risk;
  only_gradients_ = only_gradients;
  const Runtime& r = rt();
  // A node that is held here would hold itself, by its hooks.
  const std::vector<GradEdge> inputs = std::exchange(inputs_, {}), kept = std::exchange(kept_, {});
  keeps_ = !kept.empty();
  std::vector<PyObject*> tensors;
  CollectTensors(output, &tensors);
  std::vector<GradEdge> outputs;
  bool any = false;
  for (PyObject* tensor : tensors) {
    GradEdge edge = AttrIsTrue(tensor, mindspore_names.requires_grad) ? EdgeOfTensor(tensor) : GradEdge();
    const uint64_t sequence = edge.node ? SequenceOf(edge.node.get()) : kNoSequence;
    if (sequence == kNoSequence) edge = {};  // a leaf: its node is never run
    any |= static_cast<bool>(edge.node);
    if (edge.node) t_next_sequence = std::max(t_next_sequence, sequence + 1);
    outputs.push_back(std::move(edge));
  }
  if (!any) return;
  input_grads_.resize(inputs.size());
  output_grads_.resize(outputs.size());
  std::vector<InputEdge> edges;
  if (r.options.output && !r.options.structure) {
    std::vector<GradEdge> ways = outputs;
    ways.insert(ways.end(), kept.begin(), kept.end());
    GraphWalk::OfThread().FindEdges(ways, since_, inputs, &edges);
  }
  unknown_.assign(inputs.size(), false);
  if (!name.IsModule()) TellPlacesApart(&edges);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].node) continue;
    // What is returned as it came has no node in between: its gradient is that of all who use the argument, of the
    // caller and of the call itself, and nothing tells the shares.
    const auto same = std::find(inputs.begin(), inputs.end(), outputs[i]);
    const auto input = static_cast<size_t>(same - inputs.begin());
    const auto leads_there = [&](const InputEdge& edge) { return edge.input == input; };
    if (same != inputs.end() && (name.IsModule() || std::any_of(edges.begin(), edges.end(), leads_there))) {
      unknown_[input] = true;
      ++outputs_unknown_;
      continue;
    }
    CallHook* hook = HookAt(outputs[i]);
    if (hook == nullptr) return NoteSkip("a backward could not be hooked", name.str() + ": " + TakeError());
    hook->outputs.push_back({shared_from_this(), outputs[i].number, i});
    ++expected_, ++outputs_expected_;
    if (same == inputs.end()) continue;
    hook->inputs.push_back({shared_from_this(), -1 - outputs[i].number, input});
    ++expected_;
  }
  if (outputs_unknown_ > 0 && outputs_expected_ == 0) return NoteSkip(kReturned, name.str());  // it has no entry
  for (const InputEdge& edge : edges) {
    if (unknown_[edge.input]) continue;
    CallHook* hook = HookAt({Ref::Borrow(edge.node), 0, NodeKey(edge.node)});
    if (hook == nullptr) continue;
    hook->inputs.push_back({shared_from_this(), edge.slot, edge.input});
    ++expected_;
  }
}

void CallBackward::TellPlacesApart(std::vector<InputEdge>* edges) {
  for (size_t input = 0, inputs = unknown_.size(); input < inputs; ++input) {
    const auto is_this = [&](int position) { return position == static_cast<int>(input); };
    const auto places = std::ranges::count_if(positions_, is_this);
    if (places < 2) continue;
    std::vector<InputEdge*> own;
    for (InputEdge& edge : *edges) {
      if (edge.input == input) own.push_back(&edge);
    }
    const bool one_node =
        std::ranges::all_of(own, [&](const InputEdge* edge) { return edge->node == own.front()->node; });
    if (!one_node || own.size() != static_cast<size_t>(places)) {
      unknown_[input] = !own.empty();
      continue;
    }
    std::ranges::sort(own, {}, [](const InputEdge* edge) { return edge->slot; });
    auto position = std::ranges::find_if(positions_, is_this);
    for (size_t k = 1; k < own.size(); ++k) {
      position = std::find_if(position + 1, positions_.end(), is_this);
      *position = static_cast<int>(input_grads_.size());
      own[k]->input = input_grads_.size();
      input_grads_.emplace_back();
      unknown_.push_back(false);
    }
  }
}

bool CallBackward::Fresh() const {
  return generation_ == rt().generation && rt().step_open && !rt().trigger.exhausted();
}

void CallBackward::Begin() {
  if (std::exchange(begun_, true)) return;
  outputs_recorded_ = false;
  told_ = outputs_told_ = 0;
  OpenBackwards().push_back(shared_from_this());
}

void CallBackward::OnOutputGrad(size_t output, PyObject* grad) {
  if (!Fresh()) return;
  Begin();
  if (grad != Py_None) output_grads_[output] = Ref::Borrow(grad);
  if (++outputs_told_ == outputs_expected_) RecordOutputs();
  Told();
}

void CallBackward::OnInputGrad(size_t input, PyObject* grad) {
  if (!Fresh()) return;
  Begin();
  Ref& sum = input_grads_[input];
  if (grad != Py_None && !sum) {
    sum = Ref::Borrow(grad);
  } else if (grad != Py_None) {
    Ref added(PyNumber_Add(sum.get(), grad));
    if (!added) NoteSkip("gradients of an input could not be added", name_.str() + ": " + TakeError());
    if (added) sum = std::move(added);
  }
  Told();
}

void CallBackward::Told() {
  if (++told_ < expected_) return;
  const CallBackwardPtr self = shared_from_this();
  std::erase(OpenBackwards(), self);
  Finish();
}

void CallBackward::RecordOutputs() {
  if (std::exchange(outputs_recorded_, true)) return;
  Runtime& r = rt();
  std::vector<Ref> grads(output_grads_.size());
  grads.swap(output_grads_);
  if (r.options.modules && r.options.extra_info && !r.trigger.active()) {
    auto lock = r.recorder->lock();
    if (r.options.apis || name_.IsModule()) r.recorder->construct().List(name_, parent_);
  }
  if (name_.IsModule()) r.filter.BeginModule(name_);
  if (r.options.structure || !ShouldCollect(name_, risk_)) return;
  record_ = r.recorder->Acquire(name_);
  for (size_t i = 0; i < outputs_unknown_; ++i) NoteSkip(kReturned, name_.str());
  if (!r.options.input) return;
  record_->KeyLiteral("input");
  record_->BeginList();
  for (const Ref& grad : grads) RecordValue(record_, grad ? grad.get() : Py_None, nullptr, 1);
  record_->EndList();
}

// Of a Cell one tensor at several positions has one gradient, of all of them.
bool CallBackward::IsKnown(int input) const {
  const bool once = std::ranges::count(positions_, input) == 1;
  if (unknown_[static_cast<size_t>(input)]) {
    NoteSkip(once || name_.IsModule() ? kReturned : kAtSeveralPlaces, name_.str());
    return false;
  }
  if (!name_.IsModule() || once) return true;
  NoteSkip("one tensor stands at several places of a module", name_.str());
  return false;
}

void CallBackward::RecordInputs() {
  std::vector<Ref> grads(input_grads_.size());
  grads.swap(input_grads_);
  if (record_ == nullptr || !rt().options.output) return;
  record_->KeyLiteral("output");
  record_->BeginList();
  for (const int position : positions_) {
    const PyObject* grad = position < 0 ? nullptr : grads[static_cast<size_t>(position)].get();
    const bool known = position < 0 || IsKnown(position);
    if (grad == nullptr && only_gradients_ && known) continue;
    if (!known) grad = nullptr;
    RecordValue(record_, grad == nullptr ? Py_None : const_cast<PyObject*>(grad), nullptr, 1);
  }
  record_->EndList();
}

void CallBackward::Finish() {
  begun_ = false;
  if (!Fresh()) {
    for (Ref& grad : input_grads_) grad = Ref();
    for (Ref& grad : output_grads_) grad = Ref();
    record_ = nullptr;  // the recorder's
    return;
  }
  if (outputs_told_ == 0 && keeps_) {  // the pass came by what was kept alone: nothing came to the call
    for (Ref& grad : input_grads_) grad = Ref();
    return;
  }
  RecordOutputs();
  RecordInputs();
  if (name_.IsModule()) rt().filter.EndModule(name_);
  if (Record* done = std::exchange(record_, nullptr); done != nullptr) FinishRecord(done);
}

void FinishOpenBackwards() {
  if (OpenBackwards().empty()) return;
  InTool guard;
  const GradientsLater later;
  for (const CallBackwardPtr& call : std::exchange(OpenBackwards(), {})) call->Finish();
}

}  // namespace msprobe
