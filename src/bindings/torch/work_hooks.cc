#include "bindings/torch/work_hooks.h"

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings/python/api_site.h"
#include "bindings/python/api_values.h"
#include "bindings/python/framework.h"
#include "bindings/python/hook_object.h"
#include "bindings/python/runtime.h"
#include "bindings/python/tensor_record.h"
#include "bindings/python/works.h"

namespace msprobe {
namespace {

// Objects whose methods this thread is in: a work written in Python may wait for what it is made of, and go on to
// change what that has brought.
std::vector<PyObject*>& Asked() {
  static thread_local std::vector<PyObject*> asked;  // NOLINT(clang-diagnostic-exit-time-destructors): owns none
  return asked;
}

void BeginAsking(const CallArgs& args) { Asked().push_back(FirstArgument(args)); }

// Whether this was the outermost call of the object, and not one of ours.
bool EndAsking(const CallArgs& args) {
  PyObject* object = FirstArgument(args);
  auto& asked = Asked();
  if (!asked.empty()) asked.pop_back();
  return object != nullptr && !t_flags.in_tool && std::find(asked.begin(), asked.end(), object) == asked.end();
}

void AfterWait(const CallArgs& args, PyObject* result) {
  if (EndAsking(args)) WorkWaited(FirstArgument(args), result == nullptr);
}

void AfterSynchronize(const CallArgs& args, PyObject* result) {
  if (EndAsking(args) && result != nullptr) WorkLookedAt(FirstArgument(args), true);
}

void AfterCompleted(const CallArgs& args, PyObject* result) {
  if (EndAsking(args) && result == Py_True) WorkWaited(FirstArgument(args), false);
}

void AfterResult(const CallArgs& args, PyObject* result) {
  if (EndAsking(args) && result != nullptr) WorkLookedAt(FirstArgument(args), false);
}

void AfterGetFuture(const CallArgs& args, PyObject* result) {
  PyObject* work = FirstArgument(args);
  if (work != nullptr && result != nullptr && AnyOpenWork() && !t_flags.in_tool) AddFuture(result, {Ref::Borrow(work)});
}

void FutureEnded(PyObject* future, bool failed) {
  if (!AnyOpenWork()) return;
  for (const Ref& work : WorksToldBy(future)) WorkWaited(work.get(), failed);
}

void AfterFutureWait(const CallArgs& args, PyObject* result) {
  if (EndAsking(args)) FutureEnded(FirstArgument(args), result == nullptr);
}

void FutureIsDone(PyObject* future) {
  if (!AnyOpenWork()) return;
  for (const Ref& work : WorksToldBy(future)) {
    FillsHostMemory(work.get()) ? WorkWaited(work.get(), false) : WorkLookedAt(work.get(), false);
  }
}

void AfterFutureDone(const CallArgs& args, PyObject* result) {
  if (EndAsking(args) && result == Py_True) FutureIsDone(FirstArgument(args));
}

void AfterFutureValue(const CallArgs& args, PyObject* result) {
  if (EndAsking(args) && result != nullptr) FutureIsDone(FirstArgument(args));
}

// Runs on the thread that fulfils the future, on the streams that its value is ready on.
class DoneHook final : public Hook {
 public:
  explicit DoneHook(std::vector<Ref> works) : works_(std::move(works)) {}
  PyObject* Call(PyObject* const* args, Py_ssize_t count) override {
    Shielded([&] {
      bool failed = true;
      if (count > 0) {
        InTool guard;
        Ref value(PyObject_CallMethod(args[0], "value", nullptr));
        failed = !value;
        PyErr_Clear();
      }
      for (const Ref& work : std::exchange(works_, {})) WorkWaited(work.get(), failed);
    });
    Py_RETURN_NONE;
  }

 private:
  std::vector<Ref> works_;
};

// What the user chains to a future sees the values: ours runs right before it.
void BeforeThen(const CallArgs& args) {
  PyObject* future = FirstArgument(args);
  if (future == nullptr || !AnyOpenWork() || t_flags.in_tool) return;
  std::vector<Ref> works = WorksToldBy(future);
  if (works.empty()) return;
  InTool guard;
  Ref hook(NewHookObject(std::make_unique<DoneHook>(std::move(works))));
  Ref added(hook ? PyObject_CallMethod(future, "add_done_callback", "O", hook.get()) : nullptr);
  if (!added) PyErr_Clear();
}

// One future of several.
void AfterCollect(const CallArgs& args, PyObject* result) {
  PyObject* futures = FirstArgument(args);
  if (futures == nullptr || result == nullptr || !PyList_Check(futures) || !AnyOpenWork() || t_flags.in_tool) return;
  std::vector<Ref> works;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(futures); ++i) {
    const auto of_one = WorksToldBy(PyList_GET_ITEM(futures, i));
    works.insert(works.end(), of_one.begin(), of_one.end());
  }
  AddFuture(result, works);
}

// ---- blocks of communications: `_coalescing_manager` ----

// The groups whose device gathers what it is told until the block ends. None is held, nor asked for anything.
std::vector<PyObject*>& Gathering() {
  static auto* gathering = new std::vector<PyObject*>;
  return *gathering;
}
bool IsGathering(PyObject* group) {
  return std::find(Gathering().begin(), Gathering().end(), group) != Gathering().end();
}

// Of the module that knows all groups; null without it.
Ref OfWorld(const char* attribute) {
  static PyObject* const name = PyUnicode_InternFromString("torch.distributed.distributed_c10d");
  Ref module(PyImport_GetModule(name));
  Ref world(module ? PyObject_GetAttrString(module.get(), "_world") : nullptr);
  Ref found(world ? PyObject_GetAttrString(world.get(), attribute) : nullptr);
  PyErr_Clear();
  return found;
}

bool IsGroup(PyObject* o) {
  PyTypeObject* group = framework().types().process_group;
  return o != nullptr && group != nullptr && PyType_IsSubtype(Py_TYPE(o), group);
}

// A call that names none is one of the default group.
Ref GroupOf(const CallArgs& args) {
  std::vector<PyObject*> values = PositionalArguments(args);
  if (args.kwargs != nullptr) values.push_back(PyDict_GetItemString(args.kwargs, "group"));
  const auto given = std::find_if(values.begin(), values.end(), IsGroup);
  return given != values.end() ? Ref::Borrow(*given) : OfWorld("default_pg");
}

// Null: the group has no open block.
Ref EntriesOf(PyObject* group) {
  const Ref blocks = OfWorld("pg_coalesce_state");
  PyObject* entries = blocks && PyDict_Check(blocks.get()) ? PyDict_GetItemWithError(blocks.get(), group) : nullptr;
  PyErr_Clear();
  return Ref::Borrow(entries != nullptr && PyList_Check(entries) ? entries : nullptr);
}

// The entry may have a view of the argument.
bool IsOneOf(const CallArgs& args, PyObject* tensor) {
  std::vector<Ref> values;
  for (PyObject* value : PositionalArguments(args)) values.push_back(Ref::Borrow(value));
  PyObject *key, *value;
  Py_ssize_t position = 0;
  while (args.kwargs != nullptr && PyDict_Next(args.kwargs, &position, &key, &value)) {
    values.push_back(Ref::Borrow(value));
  }
  TensorMemory wanted, memory;
  const bool known = IsPlainTensor(tensor) && framework().MemoryOf(tensor, &wanted);
  return std::any_of(values.begin(), values.end(), [&](const Ref& v) {
    return v.get() == tensor || (known && IsPlainTensor(v.get()) && framework().MemoryOf(v.get(), &memory) &&
                                 memory.storage == wanted.storage);
  });
}

// Of an entry the tensor that it fills.
Ref FilledBy(PyObject* entry) {
  Ref tensor(PyObject_GetAttrString(entry, "dst_tensor"));
  if (!tensor || tensor.get() == Py_None) tensor = Ref(PyObject_GetAttrString(entry, "tensor"));
  PyErr_Clear();
  return tensor;
}

void WatchGroupType(PyTypeObject* type);

WorkBlock BlockOfCall(const CallArgs& args) {
  Ref group = GroupOf(args);
  if (IsGroup(group.get())) WatchGroupType(Py_TYPE(group.get()));
  Ref entries = group ? EntriesOf(group.get()) : Ref();
  if (!entries) {
    std::erase(Gathering(), group.get());  // a block that raised
    return {};
  }
  const Py_ssize_t count = PyList_GET_SIZE(entries.get());
  Ref last = Ref::Borrow(count > 0 ? PyList_GET_ITEM(entries.get(), count - 1) : nullptr);
  if (last && !IsEntryKnown(last.get())) {
    Ref tensor = FilledBy(last.get());
    if (tensor && IsOneOf(args, tensor.get())) {
      return {std::move(group), std::move(entries), std::move(last), std::move(tensor)};
    }
  }
  if (!IsGathering(group.get())) return {};
  return {std::move(group), std::move(entries), {}, {}};
}

void AfterStart(const CallArgs& args, PyObject* result) {
  PyObject* group = FirstArgument(args);
  if (!EndAsking(args) || result == nullptr) return;
  if (!IsGathering(group)) Gathering().push_back(group);
  BlockBegins(group);
}

void AfterEnd(const CallArgs& args, PyObject* result) {
  if (!EndAsking(args)) return;
  std::erase(Gathering(), FirstArgument(args));
  BlockEnds(FirstArgument(args), nullptr, result);
}

// A method of a group that communicates several tensors, which the end of a block may have called.
void AfterLaunch(const CallArgs& args, PyObject* result) {
  if (!EndAsking(args) || !AnyOpenWork()) return;
  PyObject* group = FirstArgument(args);
  const auto positional = PositionalArguments(args);
  if (positional.size() < 2 || IsGathering(group)) return;
  ErrorStash stash;
  if (!EntriesOf(group)) BlockEnds(group, positional[1], result);
}

struct Watcher {
  const char* role;
  void (*before)(const CallArgs&);
  void (*watch)(const CallArgs&, PyObject*);
};
void Nothing(const CallArgs&, PyObject*) {}
constexpr std::array kWatchers = {
    Watcher{"wait", BeginAsking, AfterWait},
    Watcher{"synchronize", BeginAsking, AfterSynchronize},
    Watcher{"completed", BeginAsking, AfterCompleted},
    Watcher{"result", BeginAsking, AfterResult},
    Watcher{"get_future", nullptr, AfterGetFuture},
    Watcher{"future_wait", BeginAsking, AfterFutureWait},
    Watcher{"future_done", BeginAsking, AfterFutureDone},
    Watcher{"future_value", BeginAsking, AfterFutureValue},
    Watcher{"then", BeforeThen, Nothing},
    Watcher{"collect", nullptr, AfterCollect},
    Watcher{"start_block", BeginAsking, AfterStart},
    Watcher{"end_block", BeginAsking, AfterEnd},
    Watcher{"launch", BeginAsking, AfterLaunch},
};

constexpr std::array kMethods = {
    std::pair("wait", "wait"),
    std::pair("synchronize", "synchronize"),
    std::pair("block_current_stream", "synchronize"),
    std::pair("is_completed", "completed"),
    std::pair("result", "result"),
    std::pair("get_future", "get_future"),
};

const char* RoleOfWorkMethod(std::string_view name) {
  const auto known = std::find_if(kMethods.begin(), kMethods.end(), [&](const auto& m) { return name == m.first; });
  return known != kMethods.end() ? known->second : nullptr;
}

const char* RoleOfGroupMethod(std::string_view name) {
  if (name == "_start_coalescing") return "start_block";
  if (name == "_end_coalescing") return "end_block";
  return name.ends_with("_coalesced") ? "launch" : nullptr;
}

using RoleOfMethod = const char* (*)(std::string_view name);

void WatchMethods(PyTypeObject* type, RoleOfMethod role_of) {
  Ref names(type->tp_dict != nullptr ? PyDict_Keys(type->tp_dict) : nullptr);
  for (Py_ssize_t i = 0; names && i < PyList_GET_SIZE(names.get()); ++i) {
    PyObject* name = PyList_GET_ITEM(names.get(), i);
    if (!PyUnicode_Check(name)) continue;
    const char* method = PyUnicode_AsUTF8(name);
    const char* role = method != nullptr ? role_of(method) : nullptr;
    if (role == nullptr) continue;
    ApiSpec spec;
    spec.base = std::string("Work.") + method;
    spec.role = ApiRole::kWatch;
    std::string why;
    if (SetWorkRole(role, &spec) && !AddApi(reinterpret_cast<PyObject*>(type), name, spec, &why)) {
      NoteSkip("the works of a communication could not be watched", spec.base + ": " + why);
    }
  }
}

// What the class and those between it and that of the framework write themselves.
void WatchType(PyTypeObject* type, PyTypeObject* base, RoleOfMethod role_of) {
  static auto* watched = new std::vector<Ref>;
  const auto is = [](PyTypeObject* a) {
    return [a](const Ref& known) { return known.get() == reinterpret_cast<PyObject*>(a); };
  };
  if (std::any_of(watched->begin(), watched->end(), is(type)) || type->tp_mro == nullptr) return;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(type->tp_mro); ++i) {
    auto* one = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(type->tp_mro, i));
    if (base == nullptr || !PyType_IsSubtype(one, base)) continue;
    if (std::any_of(watched->begin(), watched->end(), is(one))) continue;
    watched->push_back(Ref::Borrow(reinterpret_cast<PyObject*>(one)));
    WatchMethods(one, role_of);
  }
}

void WatchGroupType(PyTypeObject* type) { WatchType(type, framework().types().process_group, RoleOfGroupMethod); }

// Also of classes in Python that have made no call yet: the first may be in a block.
void WatchGroupTypesBelow(PyObject* type) {
  WatchGroupType(reinterpret_cast<PyTypeObject*>(type));
  Ref below(PyObject_CallMethod(type, "__subclasses__", nullptr));
  for (Py_ssize_t i = 0; below && PyList_Check(below.get()) && i < PyList_GET_SIZE(below.get()); ++i) {
    WatchGroupTypesBelow(PyList_GET_ITEM(below.get(), i));
  }
  PyErr_Clear();
}

}  // namespace

bool SetWorkRole(const std::string& role, ApiSpec* spec) {
  const auto known = std::find_if(kWatchers.begin(), kWatchers.end(), [&](const Watcher& w) { return role == w.role; });
  if (known == kWatchers.end()) return false;
  spec->before = known->before;
  spec->watch = known->watch;
  spec->stays = AnyOpenWork;
  return true;
}

void WatchWorkType(PyTypeObject* type) { WatchType(type, framework().types().work, RoleOfWorkMethod); }

void WatchWorks(PyTypeObject* type) {
  watch_work_type = WatchWorkType;
  block_of_call = BlockOfCall;
  WatchWorkType(type);
  PyTypeObject* group = framework().types().process_group;
  if (group != nullptr) WatchGroupTypesBelow(reinterpret_cast<PyObject*>(group));
}

}  // namespace msprobe
