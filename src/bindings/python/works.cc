#include "bindings/python/works.h"

#include <algorithm>
#include <chrono>
#include <list>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bindings/python/api_values.h"
#include "bindings/python/framework.h"
#include "bindings/python/kept.h"
#include "bindings/python/runtime.h"

namespace msprobe {
namespace {

// A call whose works are not done. The arguments are held, for they are what the works fill.
struct OpenWork {
  const ApiSpec* spec;
  OpName name;
  uint64_t generation;
  Record* record;
  Ref args, kwargs;
  std::vector<Ref> works;  // not waited for; empty: told by the end of the block of communications it is in
};

using OpenWorks = std::list<OpenWork>;
OpenWorks& Open() {
  static auto* open = new OpenWorks;
  return *open;
}
std::unordered_map<PyObject*, OpenWorks::iterator>& ByWork() {
  static auto* by_work = new std::unordered_map<PyObject*, OpenWorks::iterator>;
  return *by_work;
}
// Looking at all of them costs a call each, so it is done when their number has doubled.
constexpr size_t kFirstLook = 64;
size_t next_look = kFirstLook;

bool IsWork(PyObject* o) {
  PyTypeObject* work = framework().types().work;
  return work != nullptr && PyType_IsSubtype(Py_TYPE(o), work);
}

// Collectives in a block of `_coalescing_manager` begin when it ends.
bool InCommunicationBlock() {
  PyObject* blocks = framework().types().open_blocks;
  return blocks != nullptr && PyDict_Size(blocks) > 0;
}

bool IsReceive(PyObject* p2p_op) {
  Ref function(PyObject_GetAttrString(p2p_op, "op"));
  Ref name(function ? PyObject_GetAttrString(function.get(), "__name__") : nullptr);
  const bool receives =
      !name || !PyUnicode_Check(name.get()) || PyUnicode_CompareWithASCIIString(name.get(), "irecv") == 0;
  PyErr_Clear();
  return receives;
}

// The works to wait for. Of a batch of sends and receives those of the receives: sends change nothing.
std::vector<Ref> WorksOf(const CallArgs& args, PyObject* result) {
  std::vector<Ref> works;
  if (IsWork(result)) works.push_back(Ref::Borrow(result));
  if (!PyList_Check(result)) return works;
  PyObject* batch =
      args.tuple != nullptr && PyTuple_GET_SIZE(args.tuple) == 1 ? PyTuple_GET_ITEM(args.tuple, 0) : nullptr;
  const Py_ssize_t n = PyList_GET_SIZE(result);
  const bool one_each = batch != nullptr && PyList_Check(batch) && PyList_GET_SIZE(batch) == n;
  for (Py_ssize_t i = 0; i < n && i < PyList_GET_SIZE(result); ++i) {
    Ref work = Ref::Borrow(PyList_GET_ITEM(result, i));
    if (!IsWork(work.get())) continue;
    if (one_each && PyList_GET_SIZE(batch) == n && !IsReceive(PyList_GET_ITEM(batch, i))) continue;
    works.push_back(std::move(work));
  }
  return works;
}

enum class ValueState { kThere, kUnknown };

// By value: describing arguments may run code of the user, which may communicate.
void Finish(OpenWork work, ValueState values) {
  Runtime& r = rt();
  if (!r.step_open || work.generation != r.generation) return;
  CallArgs args;
  args.tuple = work.args.get();
  args.kwargs = work.kwargs.get();
  if (values == ValueState::kThere) {
    RecordOutput(*work.spec, args, Py_None, work.record);
  } else {
    work.record->KeyLiteral("output");
    work.record->BeginList();
    const Py_ssize_t count = PyTuple_GET_SIZE(args.tuple) + (args.kwargs != nullptr ? PyDict_Size(args.kwargs) : 0);
    for (Py_ssize_t i = 0; i < count; ++i) work.record->Null();
    work.record->EndList();
  }
  FinishRecord(work.record);
}

OpenWork Take(OpenWorks::iterator at) {
  for (const Ref& work : at->works) ByWork().erase(work.get());
  OpenWork taken = std::move(*at);
  Open().erase(at);
  return taken;
}

bool IsDone(const OpenWork& open) {
  if (open.works.empty()) return !InCommunicationBlock();
  return std::all_of(open.works.begin(), open.works.end(), [](const Ref& work) {
    Ref done(PyObject_CallMethod(work.get(), "is_completed", nullptr));
    if (!done) PyErr_Clear();
    return done.get() == Py_True;
  });
}

// Gloo fulfils the future of a work, and so lets a communication hook of DDP go on, a moment before the work itself
// says that it is completed. Such a one is worth the wait at the end of a step.
constexpr auto kFinishing = std::chrono::seconds(2);

bool IsFinishing(const OpenWork& open) {
  return !open.works.empty() && std::all_of(open.works.begin(), open.works.end(), [](const Ref& work) {
    Ref future(PyObject_CallMethod(work.get(), "get_future", nullptr));
    Ref done(future ? PyObject_CallMethod(future.get(), "done", nullptr) : nullptr);
    if (!done) PyErr_Clear();  // a backend whose works have no future
    return done.get() == Py_True;
  });
}

void FinishDone(bool blocks_only) {
  std::vector<OpenWork> done;
  for (auto it = Open().begin(); it != Open().end();) {
    const auto at = it++;
    if ((!blocks_only || at->works.empty()) && IsDone(*at)) done.push_back(Take(at));
  }
  for (OpenWork& work : done) Finish(std::move(work), ValueState::kThere);
}

Ref TupleOf(const CallArgs& args) {
  if (args.tuple != nullptr) return Ref::Borrow(args.tuple);
  Ref tuple(PyTuple_New(args.count));
  for (Py_ssize_t i = 0; tuple && i < args.count; ++i) {
    Py_INCREF(args.vector[i]);
    PyTuple_SET_ITEM(tuple.get(), i, args.vector[i]);
  }
  return tuple;
}

}  // namespace

bool KeepUntilDone(const ApiEvent& event, const CallArgs& args, PyObject* result) {
  const ApiSpec& spec = event.site->spec;
  std::vector<Ref> works = WorksOf(args, result);
  if (works.empty() ? !InCommunicationBlock() : !spec.ignored_outputs.empty()) return false;
  if (args.names != nullptr) return false;  // of a function in C; communication has none
  Ref tuple = TupleOf(args);
  if (!tuple) return PyErr_Clear(), false;
  OpenWork open{&spec, event.name, event.generation, event.record, std::move(tuple), Ref::Borrow(args.kwargs), {}};
  const auto at = Open().insert(Open().end(), std::move(open));
  for (Ref& work : works) {
    if (ByWork().try_emplace(work.get(), at).second) at->works.push_back(std::move(work));
  }
  if (Open().size() >= next_look) {
    FinishDone(false);
    next_look = std::max(kFirstLook, 2 * Open().size());
  }
  return true;
}

void AfterWait(const CallArgs& args, PyObject* result) {
  if (Open().empty() || t_flags.in_tool) return;
  PyObject* waited = args.self != nullptr ? args.self : args.count > 0 ? args.vector[0] : nullptr;
  const auto known = ByWork().find(waited);
  if (known == ByWork().end()) {
    if (result == nullptr || InCommunicationBlock()) return;
    InTool guard;
    return FinishDone(true);
  }
  const auto at = known->second;
  ByWork().erase(known);
  auto& works = at->works;
  const auto mine = std::find_if(works.begin(), works.end(), [&](const Ref& w) { return w.get() == waited; });
  const Ref held = std::move(*mine);
  works.erase(mine);
  if (result != nullptr && !works.empty()) return;
  OpenWork done = Take(at);
  ErrorStash stash;
  InTool guard;
  if (result == nullptr) NoteSkip("an asynchronous communication failed", done.name.str());
  Finish(std::move(done), result != nullptr ? ValueState::kThere : ValueState::kUnknown);
}

void CollectDone() {
  if (Open().empty()) return;
  InTool guard;
  FinishDone(false);
}

void GiveUpOpenWorks() {
  CollectDone();
  const auto until = std::chrono::steady_clock::now() + kFinishing;
  while (std::any_of(Open().begin(), Open().end(), IsFinishing) && std::chrono::steady_clock::now() < until) {
    Py_BEGIN_ALLOW_THREADS;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    Py_END_ALLOW_THREADS;
    CollectDone();
  }
  while (!Open().empty()) {
    InTool guard;
    OpenWork open = Take(Open().begin());
    if (open.generation == rt().generation) {
      NoteSkip("nobody waited for an asynchronous communication in its step", open.name.str());
    }
    Finish(std::move(open), ValueState::kUnknown);
  }
  next_look = kFirstLook;
}

bool AnyOpenWork() { return !Open().empty(); }

}  // namespace msprobe
