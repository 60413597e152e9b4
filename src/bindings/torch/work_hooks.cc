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

// _CoalescingManager.append(work)
void AfterAppend(const CallArgs& args, PyObject* result) {
  const auto positional = PositionalArguments(args);
  if (result != nullptr && !t_flags.in_tool && positional.size() == 2) AddWorkOfBlock(positional[1]);
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
    Watcher{"append", nullptr, AfterAppend},
};

constexpr std::array kMethods = {
    std::pair("wait", "wait"),
    std::pair("synchronize", "synchronize"),
    std::pair("block_current_stream", "synchronize"),
    std::pair("is_completed", "completed"),
    std::pair("result", "result"),
    std::pair("get_future", "get_future"),
};

void WatchMethods(PyTypeObject* type) {
  for (const auto& [method, role] : kMethods) {
    Ref name(PyUnicode_InternFromString(method));
    if (!name || type->tp_dict == nullptr || PyDict_Contains(type->tp_dict, name.get()) != 1) continue;
    ApiSpec spec;
    spec.base = std::string("Work.") + method;
    spec.role = ApiRole::kWatch;
    std::string why;
    if (SetWorkRole(role, &spec) && !AddApi(reinterpret_cast<PyObject*>(type), name.get(), spec, &why)) {
      NoteSkip("the works of a communication could not be watched", spec.base + ": " + why);
    }
  }
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

void WatchWorkType(PyTypeObject* type) {
  static auto* watched = new std::vector<Ref>;
  const auto is = [](PyTypeObject* a) {
    return [a](const Ref& known) { return known.get() == reinterpret_cast<PyObject*>(a); };
  };
  if (std::any_of(watched->begin(), watched->end(), is(type)) || type->tp_mro == nullptr) return;
  PyTypeObject* base = framework().types().work;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(type->tp_mro); ++i) {
    auto* one = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(type->tp_mro, i));
    if (base == nullptr || !PyType_IsSubtype(one, base)) continue;
    if (std::any_of(watched->begin(), watched->end(), is(one))) continue;
    watched->push_back(Ref::Borrow(reinterpret_cast<PyObject*>(one)));
    WatchMethods(one);
  }
}

}  // namespace msprobe
