#include "bindings/python/works.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bindings/python/api_values.h"
#include "bindings/python/framework.h"
#include "bindings/python/kept.h"
#include "bindings/python/runtime.h"
#include "bindings/python/tensor_record.h"
#include "bindings/python/values.h"

namespace msprobe {

void (*watch_work_type)(PyTypeObject* type) = nullptr;
WorkBlock (*block_of_call)(const CallArgs& args) = nullptr;

namespace {

struct AwaitedWork {
  Ref work;
  bool waited = false;
};

struct FilledTensor {
  Ref tensor;
  TensorMemory memory;
};

// A call whose works are not done. The arguments are held, for they are what the works fill.
struct OpenWork {
  const ApiSpec* spec;
  OpName name;
  uint64_t generation;
  Record* record;
  Ref args, kwargs;
  WorkBlock block;                 // of which the work is not known yet
  std::vector<AwaitedWork> works;  // empty: the end of the block gives it
  std::vector<FilledTensor> filled;
  StandIns copies;      // of tensors that were written when only some of the works had been waited for
  uint64_t reader = 0;  // the thread that records it now
  bool done = false;

  bool Waited() const {
    return std::all_of(works.begin(), works.end(), [](const AwaitedWork& w) { return w.waited; });
  }
  bool OnHost() const {
    return std::all_of(filled.begin(), filled.end(), [](const FilledTensor& f) { return f.memory.on_host; });
  }
};
using OpenWorkPtr = std::shared_ptr<OpenWork>;

std::vector<OpenWorkPtr>& Open() {
  static auto* open = new std::vector<OpenWorkPtr>;
  return *open;
}
// A work may be that of several calls: of those in a block.
std::unordered_multimap<PyObject*, OpenWorkPtr>& ByWork() {
  static auto* by_work = new std::unordered_multimap<PyObject*, OpenWorkPtr>;
  return *by_work;
}
struct KnownFuture {
  Ref future;
  std::vector<Ref> works;
};
std::unordered_map<PyObject*, KnownFuture>& ByFuture() {
  static auto* by_future = new std::unordered_map<PyObject*, KnownFuture>;
  return *by_future;
}
// Looking at all of them costs a call each, so it is done when their number has doubled.
constexpr size_t kFirstLook = 64;
size_t next_look = kFirstLook;

std::vector<OpenWorkPtr> OpenOf(PyObject* work) {
  std::vector<OpenWorkPtr> found;
  const auto [first, last] = ByWork().equal_range(work);
  for (auto it = first; it != last; ++it) found.push_back(it->second);
  return found;
}

bool IsWork(PyObject* o) {
  PyTypeObject* work = framework().types().work;
  return work != nullptr && PyType_IsSubtype(Py_TYPE(o), work);
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

// What a work may fill among the arguments: tensors, also in lists and in sends and receives of a batch.
void CollectFilled(PyObject* value, std::vector<FilledTensor>* filled, int depth = 0) {
  static PyObject* const tensor_of = PyUnicode_InternFromString("tensor");
  if (IsPlainTensor(value)) {
    FilledTensor f{Ref::Borrow(value), {}};
    if (framework().MemoryOf(value, &f.memory)) filled->push_back(std::move(f));
  } else if (depth < 3 && (PyList_Check(value) || PyTuple_Check(value))) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(value); ++i) {
      const Ref item = Ref::Borrow(PySequence_Fast_GET_ITEM(value, i));
      CollectFilled(item.get(), filled, depth + 1);
    }
  } else if (depth == 1 && !IsTensor(value) && PyObject_HasAttr(value, tensor_of) == 1) {
    Ref tensor(PyObject_GetAttr(value, tensor_of));
    if (tensor && IsPlainTensor(tensor.get())) CollectFilled(tensor.get(), filled, depth + 1);
    PyErr_Clear();
  }
}

void LookAtMemory(OpenWork* open) {
  open->filled.clear();
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(open->args.get()); ++i) {
    CollectFilled(PyTuple_GET_ITEM(open->args.get(), i), &open->filled);
  }
  PyObject *key, *value;
  Py_ssize_t position = 0;
  while (open->kwargs && PyDict_Next(open->kwargs.get(), &position, &key, &value)) {
    CollectFilled(value, &open->filled);
  }
}

bool WasWritten(const OpenWork& open) {
  return std::any_of(open.filled.begin(), open.filled.end(), [](const FilledTensor& f) {
    TensorMemory now;
    return framework().MemoryOf(f.tensor.get(), &now) &&
           (now.storage != f.memory.storage || now.version != f.memory.version);
  });
}

enum class ValueState { kThere, kUnknown };

// Nobody finds it any more. What it held is freed when the lists are in order, for that may run code of the user.
void Forget(const OpenWorkPtr& open) {
  open->done = true;
  std::vector<KnownFuture> futures;
  auto& by_work = ByWork();
  for (auto it = by_work.begin(); it != by_work.end();) it = it->second == open ? by_work.erase(it) : std::next(it);
  std::erase(Open(), open);
  std::erase_if(ByFuture(), [&](auto& known) {
    const auto& works = known.second.works;
    const bool over = std::none_of(works.begin(), works.end(), [&](const Ref& w) { return by_work.contains(w.get()); });
    if (over) futures.push_back(std::move(known.second));
    return over;
  });
}

void RecordArrived(const OpenWork& open, ValueState values) {
  Runtime& r = rt();
  if (!r.step_open || open.generation != r.generation) return;
  CallArgs args;
  args.tuple = open.args.get();
  args.kwargs = open.kwargs.get();
  if (values == ValueState::kThere) {
    const ShownAs shown(open.copies);
    RecordOutput(*open.spec, args, Py_None, open.record);
  } else {
    open.record->KeyLiteral("output");
    open.record->BeginList();
    const Py_ssize_t count = PyTuple_GET_SIZE(args.tuple) + (args.kwargs != nullptr ? PyDict_Size(args.kwargs) : 0);
    for (Py_ssize_t i = 0; i < count; ++i) open.record->Null();
    open.record->EndList();
  }
  FinishRecord(open.record);
}

// Another thread reads the values, maybe without the GIL: whoever waited goes on, and may change them, behind that.
void WaitForReader(const OpenWork& open) {
  constexpr int kMaxWaits = 100'000;  // five seconds: a thread that hangs there must not hang the training
  if (open.reader == ThreadNumber()) return;
  for (int i = 0; i < kMaxWaits && !open.done; ++i) {
    const GilReleased released;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

// Describing arguments may run code of the user, which may communicate, and other threads.
void Finish(const OpenWorkPtr& open, ValueState values) {
  if (open->done) return;
  if (open->reader != 0) return WaitForReader(*open);
  struct Reading {
    const OpenWorkPtr open;
    ~Reading() { Forget(open); }
  };
  open->reader = ThreadNumber();
  const Reading reading{open};
  RecordArrived(*open, values);
}

bool IsCompleted(PyObject* work) {
  Ref done(PyObject_CallMethod(work, "is_completed", nullptr));
  if (!done) PyErr_Clear();
  return done.get() == Py_True;
}

bool IsDone(const OpenWork& open) {
  const auto works = open.works;  // code of the user may run
  return !works.empty() && std::all_of(works.begin(), works.end(),
                                       [](const AwaitedWork& w) { return w.waited || IsCompleted(w.work.get()); });
}

// Gloo fulfils the future of a work, and so lets a communication hook of DDP go on, a moment before the work itself
// says that it is completed. Such a one is worth the wait at the end of a step.
constexpr auto kFinishing = std::chrono::seconds(2);

bool IsFinishing(const OpenWork& open) {
  const auto works = open.works;
  return !works.empty() && std::all_of(works.begin(), works.end(), [](const AwaitedWork& w) {
    Ref future(w.waited ? nullptr : PyObject_CallMethod(w.work.get(), "get_future", nullptr));
    Ref done(future ? PyObject_CallMethod(future.get(), "done", nullptr) : nullptr);
    if (PyErr_Occurred()) PyErr_Clear();  // a backend whose works have no future
    return w.waited || done.get() == Py_True;
  });
}

// Nobody was seen to wait: the values are those of now, which are right if nothing was written since.
void FinishUnseen(const OpenWorkPtr& open) {
  if (!WasWritten(*open)) return Finish(open, ValueState::kThere);
  if (open->generation == rt().generation) {
    NoteSkip("the memory of an asynchronous communication was written before anybody was seen to wait for it",
             open->name.str());
  }
  Finish(open, ValueState::kUnknown);
}

void FinishDone() {
  const auto all = Open();
  for (const OpenWorkPtr& open : all) {
    if (!open->done && open->reader == 0 && IsDone(*open)) FinishUnseen(open);
  }
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

void AddWork(const OpenWorkPtr& open, PyObject* work) {
  const auto known = OpenOf(work);
  if (std::find(known.begin(), known.end(), open) != known.end()) return;
  ByWork().emplace(work, open);
  open->works.push_back({Ref::Borrow(work)});
  if (watch_work_type != nullptr) watch_work_type(Py_TYPE(work));
}

// A block that raised leaves calls behind, which the next block of the group does not make.
void LeaveBehind(PyObject* group, PyObject* entries) {
  for (const OpenWorkPtr& open : std::vector(Open())) {
    if (open->block.group.get() == group && (entries == nullptr || open->block.entries.get() != entries)) {
      const WorkBlock left = std::exchange(open->block, {});
    }
  }
}

bool Holds(PyObject* list, const Ref& item) {
  bool holds = false;
  for (Py_ssize_t i = 0; item && PyList_Check(list) && i < PyList_GET_SIZE(list); ++i) {
    holds |= PyList_GET_ITEM(list, i) == item.get();
  }
  return holds;
}

// Some of its works were waited for, and their memory is about to be written.
void CopyFilled(OpenWork* open, uintptr_t storage) {
  for (const FilledTensor& f : open->filled) {
    if (f.memory.storage != storage) continue;
    const auto same = [&](const auto& copy) { return copy.first.get() == f.tensor.get(); };
    if (std::any_of(open->copies.begin(), open->copies.end(), same)) continue;
    Ref copy = framework().CopyOf(f.tensor.get());
    if (copy) open->copies.emplace_back(f.tensor, std::move(copy));
  }
}

// A work written in Python may be in one of its own methods, and is not asked.
bool CanBeAsked(const OpenWork& open) {
  return !open.works.empty() && std::all_of(open.works.begin(), open.works.end(), [](const AwaitedWork& w) {
    return Py_TYPE(w.work.get()) == framework().types().work;
  });
}

void ReadBeforeWriteTo(PyObject* tensor) {
  TensorMemory memory;
  if (!IsPlainTensor(tensor) || !framework().MemoryOf(tensor, &memory)) return;
  const auto all = Open();
  for (const OpenWorkPtr& open : all) {
    const auto& filled = open->filled;
    const bool touched = std::any_of(filled.begin(), filled.end(),
                                     [&](const FilledTensor& f) { return f.memory.storage == memory.storage; });
    if (!touched || open->done) continue;
    if (open->reader != 0) {
      WaitForReader(*open);
    } else if (CanBeAsked(*open) && (IsDone(*open) || IsFinishing(*open))) {
      Finish(open, ValueState::kThere);
    } else if (std::any_of(open->works.begin(), open->works.end(), [](const AwaitedWork& w) { return w.waited; })) {
      CopyFilled(open.get(), memory.storage);
    }
  }
}

void ReadBeforeWriteToAll(PyObject* value) {
  if (value == nullptr) return;
  if (!PyList_Check(value) && !PyTuple_Check(value)) return ReadBeforeWriteTo(value);
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(value); ++i) {
    const Ref item = Ref::Borrow(PySequence_Fast_GET_ITEM(value, i));
    ReadBeforeWriteTo(item.get());
  }
}

void Failed(const OpenWorkPtr& open) {
  if (open->done || open->reader != 0) return;
  NoteSkip("an asynchronous communication failed", open->name.str());
  Finish(open, ValueState::kUnknown);
}

}  // namespace

bool KeepUntilDone(const ApiEvent& event, const CallArgs& args, PyObject* result) {
  const ApiSpec& spec = event.site->spec;
  WorkBlock block = block_of_call != nullptr ? block_of_call(args) : WorkBlock{};
  std::vector<Ref> works;  // in a block those that are returned tell of nothing
  if (!block.group) works = WorksOf(args, result);
  if (!spec.ignored_outputs.empty() || (works.empty() && !block.group)) return false;
  if (args.names != nullptr) return false;  // of a function in C; communication has none
  Ref tuple = TupleOf(args);
  if (!tuple) return PyErr_Clear(), false;
  const auto open = std::make_shared<OpenWork>(OpenWork{.spec = &spec,
                                                        .name = event.name,
                                                        .generation = event.generation,
                                                        .record = event.record,
                                                        .args = std::move(tuple),
                                                        .kwargs = Ref::Borrow(args.kwargs)});
  LookAtMemory(open.get());
  if (block.entries) LeaveBehind(block.group.get(), block.entries.get());
  open->block = std::move(block);
  Open().push_back(open);
  for (const Ref& work : works) AddWork(open, work.get());
  if (Open().size() >= next_look) {
    FinishDone();
    next_look = std::max(kFirstLook, 2 * Open().size());
  }
  return true;
}

void WorkWaited(PyObject* work, bool failed) {
  if (Open().empty()) return;
  ErrorStash stash;
  InTool guard;
  const Ref held = Ref::Borrow(work);
  const auto all = OpenOf(work);
  for (const OpenWorkPtr& open : all) {
    if (failed) {
      Failed(open);
      continue;
    }
    for (AwaitedWork& w : open->works) w.waited |= w.work.get() == work;
    if (open->Waited()) Finish(open, ValueState::kThere);
  }
}

void WorkLookedAt(PyObject* work, bool ordered_on_device) {
  if (Open().empty()) return;
  bool there = false;
  {
    InTool guard;
    const auto all = OpenOf(work);
    if (all.empty()) return;
    there = (ordered_on_device && !all.front()->OnHost()) || IsCompleted(work);
  }
  if (there) WorkWaited(work, false);
}

void AddFuture(PyObject* future, const std::vector<Ref>& works) {
  std::vector<Ref> open;
  for (const Ref& work : works) {
    if (ByWork().contains(work.get())) open.push_back(work);
  }
  if (!open.empty()) ByFuture()[future] = {Ref::Borrow(future), std::move(open)};
}

std::vector<Ref> WorksToldBy(PyObject* future) {
  const auto known = ByFuture().find(future);
  return known == ByFuture().end() ? std::vector<Ref>() : known->second.works;
}

bool FillsHostMemory(PyObject* work) {
  const auto all = OpenOf(work);
  return std::all_of(all.begin(), all.end(), [](const OpenWorkPtr& open) { return open->OnHost(); });
}

void BlockBegins(PyObject* group) {
  if (!Open().empty()) LeaveBehind(group, nullptr);
}

void BlockEnds(PyObject* group, PyObject* tensors, PyObject* result) {
  if (Open().empty()) return;
  ErrorStash stash;
  InTool guard;
  for (const OpenWorkPtr& open : std::vector(Open())) {
    if (open->block.group.get() != group || open->done) continue;
    if (tensors != nullptr && !Holds(tensors, open->block.tensor)) continue;
    const WorkBlock ended = std::exchange(open->block, {});
    if (result == nullptr) {
      Failed(open);
    } else if (IsWork(result)) {
      LookAtMemory(open.get());
      AddWork(open, result);
    } else {
      Finish(open, ValueState::kThere);
    }
  }
}

bool IsEntryKnown(PyObject* entry) {
  return std::any_of(Open().begin(), Open().end(),
                     [&](const OpenWorkPtr& open) { return open->block.entry.get() == entry; });
}

void ReadBeforeWrite(const CallArgs& args) {
  InTool guard;
  ReadBeforeWriteToAll(FirstArgument(args));
  ReadBeforeWriteToAll(OutArgument(args));
}

void CollectDone() {
  if (Open().empty()) return;
  InTool guard;
  FinishDone();
}

void GiveUpOpenWorks() {
  CollectDone();
  const auto until = std::chrono::steady_clock::now() + kFinishing;
  const auto finishing = [] {
    InTool guard;
    const auto all = Open();
    return std::any_of(all.begin(), all.end(), [](const OpenWorkPtr& open) { return IsFinishing(*open); });
  };
  while (finishing() && std::chrono::steady_clock::now() < until) {
    Py_BEGIN_ALLOW_THREADS;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    Py_END_ALLOW_THREADS;
    CollectDone();
  }
  InTool guard;
  for (const OpenWorkPtr& open : std::vector(Open())) {
    if (open->reader == 0 && !open->done && open->generation == rt().generation) {
      NoteSkip("nobody waited for an asynchronous communication in its step", open->name.str());
    }
    Finish(open, ValueState::kUnknown);
  }
  next_look = kFirstLook;
}

bool AnyOpenWork() { return !Open().empty(); }

}  // namespace msprobe
