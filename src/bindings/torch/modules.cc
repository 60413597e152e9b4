#include "bindings/torch/modules.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "bindings/python/api_values.h"
#include "bindings/python/framework.h"
#include "bindings/python/hook_object.h"
#include "bindings/python/kept.h"
#include "bindings/python/module_record.h"
#include "bindings/python/values.h"
#include "bindings/torch/backward_order.h"
#include "bindings/torch/late_outputs.h"
#include "bindings/torch/leaf_memo.h"
#include "bindings/torch/module_call.h"
#include "bindings/torch/tensors.h"
#include "bindings/torch/torch_objects.h"

namespace msprobe {
namespace {

struct ModuleEntry {
  Ref reference;  // weak: a model that nobody needs any more is not kept
  Ref pre, post, pre_id, post_id;
  std::shared_ptr<ModuleSite> site;
  bool crowded = false;  // compiled code notices its hooks
  bool hidden = false;
  std::array<Ref, 5> own_hooks;  // the module's own dicts while it has copies without our hooks
};
std::vector<ModuleEntry>& Modules() {
  static auto* modules = new std::vector<ModuleEntry>;
  return *modules;
}
bool installed = false;
HiddenHooks hidden = HiddenHooks::kNone;
// The first two hold hooks that run before the forward.
constexpr std::array kHookDicts = {"_forward_pre_hooks", "_forward_pre_hooks_with_kwargs", "_forward_hooks",
                                   "_forward_hooks_with_kwargs", "_forward_hooks_always_called"};

bool Tracing() {
  PyObject* tracing_state = torch_objects().tracing_state;
  if (tracing_state == nullptr) return false;
  Ref state(PyObject_CallNoArgs(tracing_state));
  if (!state) PyErr_Clear();
  return state.get() != Py_None;
}

bool HasLegacyBackwardHook(PyObject* module) {
  Ref full(PyObject_GetAttr(module, torch_names.is_full_backward_hook)),
      hooks(PyObject_GetAttr(module, torch_names.backward_hooks));
  if (!full || !hooks) {
    PyErr_Clear();
    return false;
  }
  return full.get() == Py_False && PyObject_Size(hooks.get()) > 0;
}

// A call that was left without its hook being run: by KeyboardInterrupt and the like, or by stop() inside it.
void DropLastCall() {
  auto& calls = OpenCalls();
  const OpenCall call = std::move(calls.back());
  calls.pop_back();
  LeafMemo::OfThread().End();
  if (call.generation == rt().generation) EndParent(call.name);
}

PyObject* ParametersOf(PyObject* module) {
  PyObject* params = PyObject_GetAttr(module, torch_names.parameters);
  if (params == nullptr || PyDict_Check(params)) return PyErr_Clear(), params;
  Py_DECREF(params);
  return nullptr;
}

// As the forward is about to use them: a hook behind it may shard them again.
void KeepParameters(OpenCall* call, PyObject* module) {
  if (call->record == nullptr || !rt().options.output) return;
  const Ref params(ParametersOf(module));
  if (!params || PyDict_GET_SIZE(params.get()) == 0) return;
  auto part = std::make_unique<Record>();
  part->name = call->name;
  part->save = call->record->save;
  RecordParameterDict(part.get(), params.get());
  call->parameters = std::move(part);
}

// What a function is given of them has no other name.
void KeepBuffers(OpenCall* call, PyObject* module) {
  constexpr size_t kLongestName = 200;
  const Ref buffers(PyObject_GetAttr(module, torch_names.buffers));
  if (!buffers || !PyDict_Check(buffers.get())) return PyErr_Clear();
  PyObject *name, *buffer;
  Py_ssize_t position = 0;
  while (PyDict_Next(buffers.get(), &position, &name, &buffer)) {
    const char* text = buffer != Py_None && PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : nullptr;
    if (text == nullptr) PyErr_Clear();
    const auto plain = [](unsigned char c) { return std::isalnum(c) || c == '_'; };
    const std::string_view is = text == nullptr ? std::string_view() : text;
    TensorLook look;
    if (!is.empty() && is.size() < kLongestName && std::ranges::all_of(is, plain) && LookAtHostTensor(buffer, &look))
      call->buffers.push_back({look.data, std::string(is)});
  }
}

// Beside the output.
void RecordParameters(OpenCall* call, PyObject* module) {
  if (call->parameters != nullptr) return call->record->Append(*call->parameters);
  if (const Ref params(ParametersOf(module)); params) RecordParameterDict(call->record, params.get());
}

// Takes the record where it ends later. A module that raised has null as output, as the last ones that activation
// checkpointing recomputes.
void RecordOutput(OpenCall* call, PyObject* module, PyObject* output, bool raised) {
  if (!raised && KeepUntilArrived(call->record, &call->parameters, output)) {
    call->record = nullptr;
    return;
  }
  if (!(raised && rt().trigger.active())) {
    call->record->KeyLiteral("output");
    RecordAsList(call->record, output);
  }
  RecordParameters(call, module);
}

PyObject* BeginCall(const std::shared_ptr<ModuleSite>& site, PyObject* module, PyObject* args, PyObject* kwargs) {
  Runtime& r = rt();
  InTool guard;
  if (Tracing()) Py_RETURN_NONE;
  if (framework().Compiling()) {
    NoteSkip("a module was not run but compiled", *site->base);
    Py_RETURN_NONE;
  }
  BackwardOrder::Get().OnForward();
  RecordArrived();
  LeafMemo::OfThread().Begin(module);
  auto& calls = OpenCalls();
  const int depth = InterpreterDepth();
  while (!calls.empty() && (calls.back().generation != r.generation || calls.back().depth >= depth)) DropLastCall();
  OpenCall& call = calls.emplace_back();
  call.site = site;
  call.generation = r.generation;
  call.depth = depth;
  call.name = {site->base, site->counts->forwards.Next(), NameForm::kModuleForward};
  BeginParent(call.name);
  const bool in_place = r.trigger.active() && AttrIsTrue(module, torch_names.inplace);
  call.record = BeginModuleRecord(call.name, args, kwargs, in_place);
  KeepParameters(&call, module);
  KeepBuffers(&call, module);
  site->params.Hook(module);
  if (torch_objects().Grad()) site->params.grads->called = r.generation;
  if (!site->legacy_backward_hook && r.aside == 0) SetInputs(&call, args);
  Py_RETURN_NONE;
}

PyObject* EndCall(const std::shared_ptr<ModuleSite>& site, PyObject* module, PyObject* output) {
  Runtime& r = rt();
  auto& calls = OpenCalls();
  // It may have begun before start(), or while it was traced.
  const bool known = std::any_of(calls.begin(), calls.end(), [&](const OpenCall& c) { return c.site == site; });
  if (!known) Py_RETURN_NONE;
  // Called where the call began, or one frame further out when it raised.
  const int depth = InterpreterDepth() + 1;
  while (calls.back().site != site || (calls.back().depth > depth && calls.size() > 1)) DropLastCall();
  OpenCall& call = calls.back();
  const bool raised = output == Py_None && depth <= call.depth;
  if (call.generation == r.generation && r.running) {
    InTool guard;
    const bool collect = r.options.output && r.aside == 0 && (!r.filter.has_names() || r.filter.CheckName(call.name));
    // A range of the scope may have begun meanwhile.
    if (call.record == nullptr && collect && r.filter.has_names() && r.options.forward && !r.options.structure) {
      call.record = r.recorder->Acquire(call.name);
    }
    // A module that raised has null as output, as the last ones that activation checkpointing recomputes.
    AddParent(call.name);
    if (call.record != nullptr && collect) RecordOutput(&call, module, output, raised);
    if (call.record != nullptr) raised ? FinishRaised(call.record) : FinishRecord(call.record);
    EndParent(call.name);
    if (call.backward != nullptr) SetOutputs(&call, output);
  }
  calls.pop_back();
  LeafMemo::OfThread().End();
  Py_RETURN_NONE;
}

class SiteHook : public Hook {
 public:
  explicit SiteHook(std::shared_ptr<ModuleSite> site) : site_(std::move(site)) {}

 protected:
  std::shared_ptr<ModuleSite> site_;
};

class BeforeModule final : public SiteHook {
 public:
  using SiteHook::SiteHook;
  // module, args, kwargs
  PyObject* Call(PyObject* const* a, Py_ssize_t count) override {
    if (!rt().running || t_flags.in_tool || count < 3) Py_RETURN_NONE;
    Shielded([&] { Py_XDECREF(BeginCall(site_, a[0], a[1], a[2])); });  // None
    Py_RETURN_NONE;
  }
};

class AfterModule final : public SiteHook {
 public:
  using SiteHook::SiteHook;
  // module, args, kwargs, output; output is None when the module raised an exception
  PyObject* Call(PyObject* const* a, Py_ssize_t count) override {
    if (t_flags.in_tool || count < 4) Py_RETURN_NONE;
    Shielded([&] { Py_XDECREF(EndCall(site_, a[0], a[3])); });  // None
    Py_RETURN_NONE;
  }
};

bool SetIn(PyObject* module, const char* dict, PyObject* id, PyObject* value) {
  Ref hooks(PyObject_GetAttrString(module, dict));
  return hooks && PyObject_SetItem(hooks.get(), id, value) == 0;
}

void DropFrom(PyObject* module, const char* dict, PyObject* id) {
  Ref hooks(PyObject_GetAttrString(module, dict));
  if (!hooks || PyObject_DelItem(hooks.get(), id) != 0) PyErr_Clear();
}

// Of entries whose modules still live.
template <typename Visit>
void EachModule(Visit visit) {
  std::erase_if(Modules(), [](const ModuleEntry& e) { return !WeakTarget(e.reference.get()); });
  for (ModuleEntry& e : Modules()) {
    if (const Ref module = WeakTarget(e.reference.get())) visit(e, module.get());
  }
}

bool HasHooks(PyObject* module, const char* dict) {
  Ref hooks(PyObject_GetAttrString(module, dict));
  const bool found = hooks && PyObject_Size(hooks.get()) > 0;
  PyErr_Clear();
  return found;
}

// The compiler compiles the forward of such a module by itself, in the middle of other code, only if it has hooks.
bool IsOfTorch(PyObject* module) {
  Ref name(PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(module)), "__module__"));
  const char* text = name && PyUnicode_Check(name.get()) ? PyUnicode_AsUTF8(name.get()) : nullptr;
  PyErr_Clear();
  const std::string_view home = text != nullptr ? text : "";
  return home.starts_with("torch.nn.") || home.starts_with("torch.ao.");
}

void InstallOne(ModuleEntry& e, PyObject* m) {
  e.crowded = IsOfTorch(m) || HasHooks(m, "_forward_pre_hooks") || HasHooks(m, "_forward_hooks");
  const bool done = SetIn(m, "_forward_pre_hooks_with_kwargs", e.pre_id.get(), Py_True) &&
                    SetIn(m, "_forward_pre_hooks", e.pre_id.get(), e.pre.get()) &&
                    SetIn(m, "_forward_hooks_with_kwargs", e.post_id.get(), Py_True) &&
                    SetIn(m, "_forward_hooks", e.post_id.get(), e.post.get());
  if (!done) NoteSkip("a module could not be hooked", *e.site->base + ": " + TakeError());
  // Also run when forward() raises, so that the module is closed; older releases have no such list.
  if (!SetIn(m, "_forward_hooks_always_called", e.post_id.get(), Py_True)) PyErr_Clear();
}

}  // namespace

bool AddModule(PyObject* module, const char* base) {
  auto site = std::make_shared<ModuleSite>();
  site->base = InternName(base);
  site->counts = CountsOf(site->base);
  site->params.grads->base = site->base;
  site->params.grads->counts = site->counts;
  site->legacy_backward_hook = HasLegacyBackwardHook(module);
  if (site->legacy_backward_hook) {
    NoteSkip("a module has a hook of register_backward_hook, so its backward is left alone", base);
  }
  ModuleEntry entry;
  entry.reference = Ref(PyWeakref_NewRef(module, nullptr));
  if (!entry.reference) return false;
  entry.pre = Ref(NewHookObject(std::make_unique<BeforeModule>(site)));
  entry.post = Ref(NewHookObject(std::make_unique<AfterModule>(site)));
  entry.site = site;
  Ref hooks_module(PyImport_ImportModule("torch.utils.hooks"));
  Ref handle_type(hooks_module ? PyObject_GetAttrString(hooks_module.get(), "RemovableHandle") : nullptr);
  for (auto [id, dict] :
       {std::pair(&entry.pre_id, "_forward_pre_hooks"), std::pair(&entry.post_id, "_forward_hooks")}) {
    Ref hooks(PyObject_GetAttrString(module, dict));
    Ref handle(hooks && handle_type ? PyObject_CallOneArg(handle_type.get(), hooks.get()) : nullptr);
    if (!handle) return false;
    *id = Ref(PyObject_GetAttrString(handle.get(), "id"));
    if (!*id) return false;
  }
  if (installed) InstallOne(entry, module);
  Modules().push_back(std::move(entry));
  return true;
}

void InstallModuleHooks() {
  if (std::exchange(installed, true)) return;
  HookParameterOwners();
  bool changed = false;
  EachModule([&](ModuleEntry& e, PyObject* module) {
    InstallOne(e, module);
    changed |= e.site->params.Changed(module);
  });
  if (!changed) return;
  // It makes nodes, and these take numbers from the thread: where several threads build a graph together the numbers
  // decide in which order gradients are summed up.
  auto hook_all = [] {
    const PyGILState_STATE state = PyGILState_Ensure();
    {
      InTool guard;
      EachModule([](ModuleEntry& e, PyObject* module) { Shielded([&] { e.site->params.Hook(module); }); });
    }
    PyGILState_Release(state);
  };
  const GilReleased released;
  std::thread other;
  try {
    other = std::thread(hook_all);
  } catch (const std::exception&) {
    return hook_all();  // no thread to be had, or no memory for one
  }
  other.join();
}

// Ours stay the last: a module's input is what its forward gets, its output what its caller gets.
void MoveToEnd(PyObject* module, const char* dict) {
  Ref hooks(PyObject_GetAttrString(module, dict));
  Ref items(hooks ? PyMapping_Items(hooks.get()) : nullptr);
  const Py_ssize_t count = items ? PyList_GET_SIZE(items.get()) : 0;
  for (Py_ssize_t i = 0; i + 1 < count; ++i) {
    PyObject* item = PyList_GET_ITEM(items.get(), i);
    if (dynamic_cast<SiteHook*>(HookIn(PyTuple_GET_ITEM(item, 1))) == nullptr) continue;
    Ref moved(PyObject_CallMethod(hooks.get(), "move_to_end", "O", PyTuple_GET_ITEM(item, 0)));
  }
  PyErr_Clear();  // not a module
}

void AfterRegisterHook(const CallArgs& args, PyObject* result) {
  PyObject* module = FirstArgument(args);
  if (result == nullptr || module == nullptr || !rt().running) return;
  for (const char* dict : {"_forward_pre_hooks", "_forward_hooks"}) MoveToEnd(module, dict);
}

void RemoveModuleHooks() {
  if (!std::exchange(installed, false)) return;
  EachModule([](ModuleEntry& e, PyObject* module) {
    for (const char* dict : {"_forward_pre_hooks", "_forward_pre_hooks_with_kwargs"})
      DropFrom(module, dict, e.pre_id.get());
    for (const char* dict : {"_forward_hooks", "_forward_hooks_with_kwargs", "_forward_hooks_always_called"}) {
      DropFrom(module, dict, e.post_id.get());
    }
  });
}

// Past __setattr__, which a module or the compiler may watch.
bool SetDict(PyObject* module, PyObject* name, PyObject* hooks) {
  Ref attributes(PyObject_GetAttrString(module, "__dict__"));
  return attributes && PyObject_SetItem(attributes.get(), name, hooks) == 0;
}

// Gives the module copies of its dicts of hooks, without ours.
void HideOne(ModuleEntry* e, PyObject* module) {
  for (size_t i = 0; i < kHookDicts.size(); ++i) {
    Ref name(PyUnicode_InternFromString(kHookDicts[i])), own(PyObject_GetAttr(module, name.get()));
    Ref others(own ? PyObject_CallMethod(own.get(), "copy", nullptr) : nullptr);
    PyObject* id = (i < 2 ? e->pre_id : e->post_id).get();
    if (others && PyObject_DelItem(others.get(), id) == 0 && SetDict(module, name.get(), others.get())) {
      e->own_hooks[i] = std::move(own);
    }
    PyErr_Clear();  // not hooked
  }
}

void ShowOne(ModuleEntry* e, PyObject* module) {
  for (size_t i = 0; i < kHookDicts.size(); ++i) {
    if (!e->own_hooks[i]) continue;
    Ref name(PyUnicode_InternFromString(kHookDicts[i]));
    if (!SetDict(module, name.get(), e->own_hooks[i].get())) PyErr_Clear();
    e->own_hooks[i] = Ref();
  }
}

void HideModuleHooks(HiddenHooks which) {
  if (std::exchange(hidden, which) == which) return;
  EachModule([&](ModuleEntry& e, PyObject* module) {
    const bool hide = installed && (which == HiddenHooks::kAll || (which == HiddenHooks::kCrowded && e.crowded));
    if (std::exchange(e.hidden, hide) != hide) hide ? HideOne(&e, module) : ShowOne(&e, module);
  });
}

}  // namespace msprobe
