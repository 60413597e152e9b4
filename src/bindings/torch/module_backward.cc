#include "bindings/torch/module_backward.h"

#include <algorithm>
#include <utility>

#include "bindings/python/framework.h"
#include "bindings/python/host_tensor.h"
#include "bindings/python/kept.h"
#include "bindings/python/runtime.h"
#include "bindings/python/tensor_record.h"
#include "bindings/python/values.h"
#include "bindings/torch/autograd_graph.h"
#include "bindings/torch/module_hooks.h"

namespace msprobe {
namespace {

// With what autograd knows of it left out: a sum must not become a part of the graph.
Ref Detached(PyObject* tensor) {
  static PyObject* const detach = PyUnicode_InternFromString("detach");
  return Ref(PyObject_CallMethodNoArgs(tensor, detach));
}

Ref InShape(PyObject* tensor, PyObject* shape) {
  static PyObject* const reshape = PyUnicode_InternFromString("reshape");
  InTool guard;
  const Ref detached = Detached(tensor);
  return Ref(detached ? PyObject_CallMethodOneArg(detached.get(), reshape, shape) : nullptr);
}

// The forward has put hooks at the tensor, which change its gradient on the way in.
bool HasHooks(PyObject* tensor) {
  static PyObject* const name = PyUnicode_InternFromString("_backward_hooks");
  Ref hooks(PyObject_GetAttr(tensor, name));
  PyErr_Clear();
  return hooks && PyDict_Check(hooks.get()) && PyDict_GET_SIZE(hooks.get()) > 0;
}

bool IsInOrder(const TensorLook& look) {
  int64_t step = 1;
  for (int d = look.ndim - 1; look.strides != nullptr && d >= 0; --d) {
    if (look.shape[d] != 1 && look.strides[d] != step) return false;
    step *= look.shape[d];
  }
  return true;
}

template <typename T>
void AddElements(const char* from, int64_t count, char* to) {
  const T* const other = reinterpret_cast<const T*>(from);
  T* const sum = reinterpret_cast<T*>(to);
  for (int64_t i = 0; i < count; ++i) sum[i] += other[i];
}

// Adds to a copy that is ours alone, in its own memory and past the framework: each sum is rounded once, as there.
// False: not tensors of that kind.
bool AddInMemory(PyObject* sum, PyObject* other) {
  TensorLook to, from;
  if (!IsPlainTensor(other) || !framework().LookAt(sum, &to) || !framework().LookAt(other, &from)) return false;
  const bool same =
      to.dtype == from.dtype && to.ndim == from.ndim && std::equal(to.shape, to.shape + to.ndim, from.shape);
  if (!same || !IsInOrder(to) || !IsInOrder(from)) return false;
  const auto add = to.dtype == DType::kFloat32   ? AddElements<float>
                   : to.dtype == DType::kFloat64 ? AddElements<double>
                                                 : nullptr;
  if (add == nullptr) return false;
  const Ref held = Ref::Borrow(sum);  // another thread may let go of it
  WithoutGilFor(to.count, [&] { add(from.data, to.count, const_cast<char*>(to.data)); });
  return true;
}

}  // namespace

ModuleBackward::ModuleBackward(OpName name, NameCounts* counts)
    : OrderedCall(ThreadNumber()), name_(name), counts_(counts), generation_(rt().generation) {}

bool ModuleBackward::Fresh() const { return generation_ == rt().generation && (rt().running || t_flags.finishing); }

// Each tensor once, with the notes of its node.
void ModuleBackward::Place(const std::vector<PyObject*>& tensors, bool outputs) {
  auto& gradients = outputs ? outputs_ : inputs_;
  auto& places = outputs ? output_places_ : input_places_;
  std::vector<Ref> hooked;
  for (PyObject* tensor : tensors) {
    const TensorNode at = NodeOf(tensor);
    NodeNotes* notes = at.node ? NotesAt(at.node.get(), at.sequence) : at.leaf ? NotesOfLeaf(tensor) : nullptr;
    if (notes == nullptr) {
      NoteSkip("the backward of a module could not be hooked", name_.str() + ": " + TakeError());
      places.push_back(kNowhere);
      continue;
    }
    const auto known = std::find_if(gradients.begin(), gradients.end(),
                                    [&](const Gradient& g) { return g.id == notes->id && g.number == at.number; });
    const auto index = static_cast<size_t>(known - gradients.begin());
    places.push_back(index);
    if (known != gradients.end()) {
      ++known->places;
      continue;
    }
    Gradient& g = gradients.emplace_back();
    g.id = notes->id;
    g.number = at.number;
    notes->ports.push_back({shared_from_this(), index, outputs, at.number});
    if (at.node) PlaceAtBase(&g, index, outputs, tensor, at.node.get());
    if (!outputs) continue;
    const auto argument = std::find_if(inputs_.begin(), inputs_.end(), [&](const Gradient& input) {
      return input.id == g.id && input.number == g.number;
    });
    g.old = at.leaf || at.sequence < first_;
    if (argument != inputs_.end()) g.argument = static_cast<int>(argument - inputs_.begin());
    const GradPort port{shared_from_this(), index, true, at.number};
    const bool hooked = !at.node || (HasHooks(tensor) ? HookFirst(tensor, at.sequence, port)
                                                      : HookBefore(at.node.get(), at.sequence, notes, port));
    if (!hooked) {
      NoteSkip("the backward of a module could not be hooked", name_.str() + ": " + TakeError());
    }
  }
}

// Somebody may work in place on a view later.
void ModuleBackward::PlaceAtBase(Gradient* g, size_t index, bool output, PyObject* tensor, PyObject* node) {
  const TensorNode base = ViewedBy(node);
  if (!base.node) return;
  static PyObject* const shape = PyUnicode_InternFromString("shape");
  NodeNotes* notes = NotesAt(base.node.get(), base.sequence);
  if (notes == nullptr) return PyErr_Clear();
  g->shape = Ref(PyObject_GetAttr(tensor, shape));
  if (g->shape) notes->ports.push_back({shared_from_this(), index, output, base.number, true});
  PyErr_Clear();
}

// To ask a view for its node may make one, so the numbers are taken when nothing is asked any more, and before.
void ModuleBackward::SetInputs(const std::vector<PyObject*>& tensors) {
  Place(tensors, false);
  first_ = NextSequence();
}

void ModuleBackward::SetOutputs(const std::vector<PyObject*>& tensors) {
  Place(tensors, true);
  last_ = NextSequence();
  SetReturned();
}

PyObject* ModuleBackward::ReturnedAsItWas(const std::vector<PyObject*>& tensors) const {
  for (size_t i = 0; i < tensors.size() && i < output_places_.size(); ++i) {
    if (output_places_[i] != kNowhere && outputs_[output_places_[i]].old) return tensors[i];
  }
  return nullptr;
}

void ModuleBackward::ExpectNothing() {
  for (auto* gradients : {&inputs_, &outputs_}) {
    for (Gradient& g : *gradients) g.reached = g.unknown = false;
  }
}

void ModuleBackward::ExpectInput(size_t index, size_t edges, bool of_base) {
  inputs_[index].expected = edges;
  inputs_[index].of_base = of_base;
}

void ModuleBackward::ExpectOutput(size_t index, OutputPath path, size_t edges, PyObject* given, bool of_base) {
  Gradient& g = outputs_[index];
  g.of_base = of_base;
  g.path = g.places > 1 ? OutputPath::kUnknown : path;
  g.expected = edges;
  g.given = Ref::Borrow(g.path == OutputPath::kByEdges ? given : nullptr);
  g.reached = g.path == OutputPath::kWhole || edges > 0 || given != nullptr;
  g.unknown = g.path == OutputPath::kUnknown;
  if (g.argument >= 0) inputs_[static_cast<size_t>(g.argument)].unknown |= g.unknown;
}

// What never comes to its end must not keep gradients for as long as the graph lives.
void ModuleBackward::LetGo() {
  Reset();
  begun_ = open_ = false;
}

void ModuleBackward::Reset() {
  for (auto* gradients : {&inputs_, &outputs_}) {
    for (Gradient& g : *gradients) {
      g.seen = 0;
      g.sum = Ref();
      g.owned = g.told = false;
      g.part.reset();
    }
  }
  ended_ = waits_ = false;
}

// False: it is not recorded. Older releases do not tell passes apart; there a second one begins when an output gets all
// of its gradient again.
bool ModuleBackward::Arrive(const Gradient* whole) {
  if (!Fresh()) return LetGo(), false;
  const int64_t pass = CurrentPass();
  const bool again = pass < 0 && whole != nullptr && (whole->told || ended_);
  if (pass != pass_ || again) {
    if (begun_) End();
    Reset();
    pass_ = pass;
  }
  return true;
}

void ModuleBackward::Begin() {
  if (begun_) return;
  begun_ = true;
  // A second pass through a graph that was kept is another call of the backward.
  pass_name_ = name_;
  pass_name_.index = counts_->NumberOfBackward(name_.index, passes_++ == 0);
  AddGiven();
  // Parts that came before the first gradient of an output.
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].seen > 0 && inputs_[i].seen >= inputs_[i].expected) Tell(false, i);
  }
}

void ModuleBackward::WaitForEnd() {
  if (std::exchange(waits_, true)) return;
  using What = BackwardOrder::What;
  // Nodes behind the module run before those of the module.
  if (!open_) BackwardOrder::Get().Add(last_, What::kOpen, shared_from_this());
  BackwardOrder::Get().Add(first_, What::kEnd, shared_from_this());
}

void ModuleBackward::Open() {
  if (!begun_ || open_ || !Fresh()) return;
  open_ = true;
  {
    auto lock = rt().recorder->lock();
    rt().recorder->construct().BeginModule(pass_name_);
  }
  rt().filter.BeginModule(pass_name_);
}

// The gradients that the pass was begun with come by no edge.
void ModuleBackward::AddGiven() {
  for (Gradient& g : outputs_) {
    if (const Ref given = std::exchange(g.given, Ref()); given && given.get() != Py_None) Add(&g, given.get());
  }
}

// The sum of the parts: autograd adds them up in the order in which they come, too. More is to come: what is here now
// may have been overwritten by then.
void ModuleBackward::Add(Gradient* g, PyObject* grad) {
  InTool guard;
  if (!g->sum) {
    g->owned = !begun_ || g->seen < g->expected;
    g->sum = g->owned ? framework().CopyOf(grad) : Ref::Borrow(grad);
    if (g->sum) return;
    return NoteSkip("gradients of a tensor could not be added", name_.str() + ": there was no copy");
  }
  if (g->owned && AddInMemory(g->sum.get(), grad)) return;
  Ref other = Detached(grad);
  Ref added(other ? PyNumber_Add(g->sum.get(), other.get()) : nullptr);
  if (!added) return NoteSkip("gradients of a tensor could not be added", name_.str() + ": " + TakeError());
  g->sum = std::move(added);
  g->owned = true;
}

// All of it is there.
void ModuleBackward::Tell(bool output, size_t index) {
  Gradient& g = (output ? outputs_ : inputs_)[index];
  if (g.told || !g.sum) return;
  const Ref grad = std::exchange(g.sum, Ref());
  g.told = true;
  const auto& places = output ? output_places_ : input_places_;
  const auto place = static_cast<size_t>(std::find(places.begin(), places.end(), index) - places.begin());
  RecordPart(&g, output, place, grad.get());
  if (!output || g.argument < 0) return;
  // It goes on to the argument that it is.
  Gradient& argument = inputs_[static_cast<size_t>(g.argument)];
  ++argument.seen;
  Add(&argument, grad.get());
  if (argument.seen >= argument.expected) Tell(false, static_cast<size_t>(g.argument));
}

// Statistics now, so that no gradient lives longer than it has to, and under the name of its place, for a file.
void ModuleBackward::RecordPart(Gradient* g, bool output, size_t place, PyObject* grad) {
  const Runtime& r = rt();
  if (r.options.structure || !r.options.backward || !(output ? r.options.input : r.options.output)) return;
  InTool guard;
  auto part = std::make_unique<Record>();
  part->name = pass_name_;
  part->save = r.recorder->save_policy().For(pass_name_);
  part->KeyLiteral(output ? "input" : "output");
  part->BeginList();
  for (size_t i = 0; i < place; ++i) part->Null();
  RecordValue(part.get(), grad, nullptr, 1);
  g->part = std::move(part);
}

void ModuleBackward::OnOutputGrad(size_t index, PyObject* grad) {
  if (index >= outputs_.size()) return;
  Gradient& g = outputs_[index];
  const bool whole = g.path == OutputPath::kWhole;
  if (!Arrive(whole ? &g : nullptr) || ended_ || grad == Py_None) return;
  // Nothing has come from who got it from the module.
  if (g.path == OutputPath::kByEdges && g.seen == 0 && !g.given) return;
  Begin();
  if (!open_) BackwardOrder::Get().ReachCall(last_, *this);
  Open();
  if (whole) g.sum = Ref::Borrow(grad);
  Tell(true, index);
  // Without arguments it has passed on what there is.
  if (input_places_.empty() && AllIsTold()) return End();
  WaitForEnd();
}

void ModuleBackward::OnEdge(bool output, size_t index, PyObject* grad) {
  if (grad == Py_None || index >= (output ? outputs_ : inputs_).size() || !Arrive(nullptr)) return;
  Gradient& g = (output ? outputs_ : inputs_)[index];
  if (output && g.path == OutputPath::kWhole) return;
  if (ended_ || g.told) {
    return NoteSkip("a gradient came when the backward of its module was over", name_.str());
  }
  ++g.seen;
  if (output) {
    Begin();
    WaitForEnd();
  }
  if (g.path != OutputPath::kUnknown) {
    const Ref shaped = g.of_base ? InShape(grad, g.shape.get()) : Ref::Borrow(grad);
    shaped ? Add(&g, shaped.get())
           : NoteSkip("gradients of a tensor could not be added", name_.str() + ": " + TakeError());
  }
  // An argument gets what went through what the module returned: without that there is no backward of the module.
  if (begun_ && g.seen >= g.expected) Tell(output, index);
}

// What the pass brings to the outputs.
bool ModuleBackward::AllIsTold() const {
  return std::all_of(outputs_.begin(), outputs_.end(),
                     [](const Gradient& g) { return !g.reached || g.told || g.unknown; });
}

// Each null of its own.
void ModuleBackward::NoteUnknown() const {
  for (const auto* gradients : {&inputs_, &outputs_}) {
    for (const Gradient& g : *gradients) {
      const char* why = g.unknown && g.of_base ? "a view of an argument is changed in place"
                        : g.unknown            ? "a returned argument is used past its module, too"
                        : g.places > 1         ? "one tensor stands at several places of a module"
                                               : nullptr;
      for (int i = 0; why != nullptr && i < g.places; ++i) NoteSkip(why, pass_name_.str());
    }
  }
}

void ModuleBackward::RecordAll(Record* record, bool outputs) {
  auto& gradients = outputs ? outputs_ : inputs_;
  record->KeyLiteral(outputs ? "input" : "output");
  record->BeginList();
  const auto& places = outputs ? output_places_ : input_places_;
  for (size_t place = 0; place < places.size(); ++place) {
    const Gradient* g = places[place] == kNowhere ? nullptr : &gradients[places[place]];
    if (g == nullptr || g->part == nullptr || g->unknown || g->places > 1) {
      record->Null();
    } else {
      record->Append(*g->part, 2 + place);
    }
  }
  record->EndList();
}

void ModuleBackward::End() {
  if (!begun_) return;
  if (!Fresh()) return LetGo();
  Runtime& r = rt();
  Open();
  begun_ = open_ = false;
  ended_ = true;
  InTool guard;
  for (size_t i = 0; i < outputs_.size(); ++i) Tell(true, i);
  for (size_t i = 0; i < inputs_.size(); ++i) Tell(false, i);
  AddParent(pass_name_);
  if (!r.options.structure && r.options.backward && ShouldCollect(pass_name_, Risk::kFocus)) {
    NoteUnknown();
    Record* record = r.recorder->Acquire(pass_name_);
    if (r.options.input) RecordAll(record, true);
    if (r.options.output) RecordAll(record, false);
    FinishRecord(record);
  }
  {
    auto lock = r.recorder->lock();
    r.recorder->construct().EndModule(pass_name_);
  }
  r.filter.EndModule(pass_name_);
  for (auto* gradients : {&inputs_, &outputs_}) {
    for (Gradient& g : *gradients) g.part.reset();
  }
}

}  // namespace msprobe
