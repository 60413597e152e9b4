#include "bindings/backward.h"

#include <structmember.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <unordered_map>
#include <utility>

#include "bindings/kept.h"
#include "bindings/leaf_memo.h"
#include "bindings/values.h"

namespace msprobe {
namespace {

enum class Kind { kApi, kOutput, kOneOutput, kEdges, kParam, kEndOfPass };

struct ModulePart {
  ModuleBackwardPtr backward;
  Py_ssize_t number;  // of the gradient among those of the node
  size_t input;
};

struct HookState {
  Kind kind;
  OpName name;
  uint64_t generation = 0;
  Risk risk = Risk::kFocus;
  uint64_t sequence = kNoSequence;
  uint64_t thread = 0;  // kParam: of the forward that `sequence` is from
  int64_t pass = -1;
  std::vector<ModulePart> modules;
  ParamGradsPtr grads;
  Ref parameter;
  std::string parameter_name;
  Ref dict;  // weak: of the hooks that autograd runs together with this one
};

struct HookObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  HookState* state;
};

PyTypeObject* hook_type = nullptr;

std::vector<std::weak_ptr<ParamGrads>>& OpenGrads() {
  static auto* open = new std::vector<std::weak_ptr<ParamGrads>>;
  return *open;
}

void ApiBackward(const HookState& s, PyObject* grad_inputs, PyObject* grad_outputs) {
  Runtime& r = rt();
  if (!r.step_open || s.generation != r.generation || r.trigger.exhausted()) return;
  InTool guard;
  AddParent(s.name);
  if (!ShouldCollect(s.name, s.risk) || r.options.structure || !r.options.backward) return;
  Record* record = r.recorder->Acquire(s.name);
  if (r.options.input) record->KeyLiteral("input"), RecordAsList(record, grad_outputs);
  if (r.options.output) record->KeyLiteral("output"), RecordAsList(record, grad_inputs);
  FinishRecord(record);
}

void ParamGradient(const HookState& s) {
  Runtime& r = rt();
  if (!r.running) return;
  InTool guard;
  s.grads->Add(s.parameter.get(), s.parameter_name.c_str());
}

PyObject* GradAt(PyObject* grads, Py_ssize_t number) {
  if (!PyTuple_Check(grads)) return number == 0 ? grads : Py_None;
  return number < PyTuple_GET_SIZE(grads) ? PyTuple_GET_ITEM(grads, number) : Py_None;
}

// By index and held: a forward in another thread may add modules meanwhile.
template <typename Visit>
void EachModule(const HookState& s, Visit visit) {
  for (size_t i = 0; i < s.modules.size(); ++i) {
    const ModulePart part = s.modules[i];
    visit(part);
  }
}

LeafMemo::At AtOf(Kind kind) {
  switch (kind) {
    case Kind::kOutput: return LeafMemo::At::kBeforeNode;
    case Kind::kApi: return LeafMemo::At::kFunction;
    case Kind::kEdges: return LeafMemo::At::kModules;
    default: return LeafMemo::At::kNowhere;
  }
}

// The arguments are those of autograd: before a node its grad_outputs, after it grad_inputs and grad_outputs.
PyObject* RunHook(PyObject* self, PyObject* const* args, size_t nargsf) {
  HookState* s = reinterpret_cast<HookObject*>(self)->state;
  const Py_ssize_t n = PyVectorcall_NARGS(nargsf);
  if (s->kind == Kind::kEndOfPass) BackwardOrder::Get().EndPass(s->pass);
  if (t_flags.in_tool || n < 1) Py_RETURN_NONE;
  LeafMemo& memo = LeafMemo::OfThread();
  const LeafMemo::At at = AtOf(s->kind);
  at == LeafMemo::At::kNowhere ? memo.End() : memo.AtNode(at, s->sequence, s->dict.get());
  switch (s->kind) {
    case Kind::kApi:
      BackwardOrder::Get().Reach(s->sequence);
      if (n >= 2) ApiBackward(*s, args[0], args[1]);
      break;
    case Kind::kOutput:
      BackwardOrder::Get().Reach(s->sequence);
      EachModule(*s, [&](const ModulePart& part) {
        if (PyObject* grad = GradAt(args[0], part.number); grad != Py_None) part.backward->Begin(grad, s->sequence);
      });
      break;
    case Kind::kOneOutput:
      BackwardOrder::Get().Reach(s->sequence);
      EachModule(*s, [&](const ModulePart& part) {
        part.backward->OnOutputGrad(static_cast<size_t>(part.number), GradAt(args[0], 0));
      });
      break;
    case Kind::kEdges:
      BackwardOrder::Get().Reach(s->sequence);
      EachModule(*s,
                 [&](const ModulePart& part) { part.backward->OnInputGrad(part.input, GradAt(args[0], part.number)); });
      break;
    case Kind::kParam:
      BackwardOrder::Get().ReachParameter(s->sequence, s->thread);
      ParamGradient(*s);
      break;
    case Kind::kEndOfPass: break;
  }
  Py_RETURN_NONE;
}

PyObject* CallHook(PyObject* self, PyObject* const* args, size_t nargsf, PyObject*) {
  Shielded([&] { Py_XDECREF(RunHook(self, args, nargsf)); });  // None
  Py_RETURN_NONE;
}

void DeallocHook(PyObject* self) {
  delete reinterpret_cast<HookObject*>(self)->state;
  PyTypeObject* type = Py_TYPE(self);
  PyObject_Free(self);
  Py_DECREF(type);
}

HookObject* NewHook(Kind kind) {
  auto* hook = PyObject_New(HookObject, hook_type);
  if (hook == nullptr) return nullptr;
  hook->vectorcall = CallHook;
  hook->state = new HookState{};
  hook->state->kind = kind;
  return hook;
}

PyObject* NewModuleHook(Kind kind, ModuleBackwardPtr backward, Py_ssize_t number, uint64_t sequence) {
  HookObject* hook = NewHook(kind);
  if (hook != nullptr) {
    hook->state->sequence = sequence;
    hook->state->modules.push_back({std::move(backward), number, 0});
  }
  return reinterpret_cast<PyObject*>(hook);
}

}  // namespace

bool ShouldCollect(const OpName& name, Risk risk) {
  OpFilter& filter = rt().filter;
  if (filter.has_names()) return filter.CheckName(name);
  return name.IsModule() || filter.CheckRisk(risk);
}

void AddParent(const OpName& name) {
  Runtime& r = rt();
  if (!r.options.modules || !r.options.extra_info || r.trigger.active()) return;  // with a trigger: when it is kept
  auto lock = r.recorder->lock();
  r.recorder->construct().AddOp(name, r.options.apis);
}

void HookApiBackward(PyObject* output, const OpName& name, Risk risk) {
  PyObject* tensor = FirstTensor(output);
  if (tensor == nullptr || !AttrIsTrue(tensor, names.requires_grad)) return;
  Ref node(PyObject_GetAttr(tensor, names.grad_fn));
  if (!node) return PyErr_Clear();
  if (node.get() == Py_None || !rt().Grad()) return;
  HookObject* hook = NewHook(Kind::kApi);
  if (hook == nullptr) return PyErr_Clear();
  hook->state->name = name;
  hook->state->generation = rt().generation;
  hook->state->risk = risk;
  if (rt().options.modules) hook->state->sequence = SequenceOf(node.get());
  Ref owned(reinterpret_cast<PyObject*>(hook));
  Ref handle(PyObject_CallMethodOneArg(node.get(), names.register_hook, owned.get()));
  if (!handle) return NoteSkip("a backward could not be hooked", name.str() + ": " + TakeError());
  SetHandle(owned.get(), handle.get());
}

PyObject* NewOutputHook(ModuleBackwardPtr backward, Py_ssize_t number, uint64_t sequence) {
  return NewModuleHook(Kind::kOutput, std::move(backward), number, sequence);
}

void AddOuterModule(PyObject* output_hook, ModuleBackwardPtr backward, Py_ssize_t number) {
  auto& modules = reinterpret_cast<HookObject*>(output_hook)->state->modules;
  modules.insert(modules.begin(), {std::move(backward), number, 0});
}

PyObject* NewOneOutputHook(ModuleBackwardPtr backward, size_t output, uint64_t sequence) {
  return NewModuleHook(Kind::kOneOutput, std::move(backward), static_cast<Py_ssize_t>(output), sequence);
}

PyObject* NewEdgeHook(uint64_t sequence) {
  HookObject* hook = NewHook(Kind::kEdges);
  if (hook != nullptr) hook->state->sequence = sequence;
  return reinterpret_cast<PyObject*>(hook);
}

void AddInputEdge(PyObject* edge_hook, ModuleBackwardPtr backward, Py_ssize_t slot, size_t input) {
  reinterpret_cast<HookObject*>(edge_hook)->state->modules.push_back({std::move(backward), slot, input});
}

int32_t Counter::Next() {
  if (std::exchange(generation, rt().generation) != rt().generation) last = -1;
  return ++last;
}

NameCounts* CountsOf(const std::string* base) {
  static auto* all = new std::unordered_map<const std::string*, std::unique_ptr<NameCounts>>;
  auto& counts = (*all)[base];
  if (counts == nullptr) counts = std::make_unique<NameCounts>();
  return counts.get();
}

PyObject* NewEndOfPassHook(int64_t pass) {
  HookObject* hook = NewHook(Kind::kEndOfPass);
  if (hook != nullptr) hook->state->pass = pass;
  return reinterpret_cast<PyObject*>(hook);
}

void ParamGrads::Add(PyObject* parameter, const char* name) {
  Runtime& r = rt();
  const bool wanted = called == r.generation && !r.options.structure && r.options.backward &&
                      (!r.filter.has_names() || r.filter.CheckName(OpName{base, 0, NameForm::kPlain}));
  // Read first, for another thread may bring the gradient of another parameter meanwhile.
  Record part;
  if (wanted) {
    // Where parameters are views of a flat one (FSDP1) they have no gradient of their own, and asking for it warns.
    Ref producer(PyObject_GetAttr(parameter, names.grad_fn));
    Ref grad(producer.get() == Py_None ? PyObject_GetAttr(parameter, names.grad) : nullptr);
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
  HookObject* hook = NewHook(Kind::kParam);
  if (hook == nullptr) return nullptr;
  if (!std::exchange(grads->listed, true)) OpenGrads().push_back(grads);
  hook->state->grads = std::move(grads);
  hook->state->parameter = Ref::Borrow(parameter);
  hook->state->parameter_name = name;
  return reinterpret_cast<PyObject*>(hook);
}

void SetParamHookSequence(PyObject* hook, uint64_t sequence) {
  HookState* state = reinterpret_cast<HookObject*>(hook)->state;
  state->sequence = sequence;
  state->thread = ThreadNumber();
}

void FinishParamGrads() {
  auto& open = OpenGrads();
  std::erase_if(open, [](const std::weak_ptr<ParamGrads>& g) { return g.expired(); });
  for (const auto& weak : open) {
    if (auto grads = weak.lock()) grads->Finish();
  }
}

bool IsBackwardHook(PyObject* hook) { return Py_TYPE(hook) == hook_type; }

void SetHandle(PyObject* hook, PyObject* handle) {
  Ref dict(PyObject_GetAttr(handle, names.hooks_dict_ref));
  if (!dict) return PyErr_Clear();
  reinterpret_cast<HookObject*>(hook)->state->dict = std::move(dict);
}

bool InitBackwardTypes() {
  if (hook_type != nullptr) return true;
  static PyMemberDef members[] = {
      {"__vectorcalloffset__", T_PYSSIZET, offsetof(HookObject, vectorcall), READONLY, nullptr},
      {nullptr, 0, 0, 0, nullptr}};
  static PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(DeallocHook)},
                                {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                                {Py_tp_members, members},
                                {0, nullptr}};
  static PyType_Spec spec = {"msprobe._core.BackwardHook", sizeof(HookObject), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL, slots};
  hook_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return hook_type != nullptr;
}

}  // namespace msprobe
