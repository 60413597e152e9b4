#include "bindings/python/runtime.h"

#include <pthread.h>

#include <chrono>
#include <memory>
#include <thread>

#include "base/parallel.h"
#include "bindings/python/framework.h"

namespace msprobe {

thread_local ThreadFlags t_flags;
Names names;

uint64_t ThreadNumber() {
  static uint64_t last = 0;  // under the GIL
  if (t_flags.number == 0) t_flags.number = ++last;
  return t_flags.number;
}

Runtime& rt() {
  static auto* runtime = new Runtime;  // never destroyed: hooks may fire while the interpreter shuts down
  return *runtime;
}

Interpreter& interpreter() {
  static auto* interpreter = new Interpreter;  // as above
  return *interpreter;
}

namespace {

void InitNames() {
  const auto intern = [](const char* text) { return PyUnicode_InternFromString(text); };
  names = {.code = intern("__code__"),
           .signature = intern("__signature__"),
           .enter = intern("__enter__"),
           .exit = intern("__exit__"),
           .fields = intern("_fields"),
           .dataclass_fields = intern("__dataclass_fields__"),
           .type = intern("type"),
           .dtype = intern("dtype"),
           .shape = intern("shape"),
           .requires_grad = intern("requires_grad"),
           .extra = intern("extra"),
           .plain = intern("plain"),
           .file = intern("file")};
}

// A forked child (DataLoader workers) has the hooks but neither the files nor the writing thread.
void AfterForkInChild() {
  rt().running = rt().step_open = false;
  rt().threads_in_tool = rt().aside = 0;
  try {
    auto recorder = std::make_unique<Recorder>();
    auto files = std::make_unique<TensorFiles>();
    rt().recorder = recorder.release();
    rt().files = files.release();
  } catch (const std::bad_alloc&) {  // nothing will be recorded here anyway
  }
}

}  // namespace

void InitRuntime() {
  Runtime& r = rt();
  if (r.recorder != nullptr) return;
  InitNames();
  r.recorder = new Recorder;
  r.files = new TensorFiles;
  pthread_atfork(nullptr, nullptr, AfterForkInChild);
}

void WaitForOtherThreads() {
  constexpr int kMaxWaits = 50'000;  // five seconds: a thread that hangs there must not hang the training
  const int own = t_flags.in_tool ? 1 : 0;
  for (int i = 0; i < kMaxWaits && rt().threads_in_tool > own; ++i) {
    Py_BEGIN_ALLOW_THREADS;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    Py_END_ALLOW_THREADS;
  }
}

void NoteSkip(const std::string& kind, const std::string& text) {
  ++rt().skipped[kind];
  rt().skip_examples.try_emplace(kind, text);
}

void NoteNoMemory() noexcept { ++rt().without_memory; }

void CountNoMemory() {
  Runtime& r = rt();
  if (r.without_memory == 0) return;
  const std::string kind = "there was not enough memory";
  r.skipped[kind] += r.without_memory;
  r.without_memory = 0;
  r.skip_examples.try_emplace(kind, "a value, a name or a call stack");
}

void NoteFault(const char* what) noexcept {
  try {
    NoteSkip("something could not be recorded", what);
  } catch (const std::bad_alloc&) {
    NoteNoMemory();
  }
}

void NotePythonError() noexcept {
  if (PyErr_ExceptionMatches(PyExc_MemoryError)) {
    PyErr_Clear();
    return NoteNoMemory();
  }
  try {
    const std::string text = TakeError();
    NoteFault(text.c_str());
  } catch (const std::bad_alloc&) {
    PyErr_Clear();
    NoteNoMemory();
  }
}

Status NoMemory() noexcept { return OutOfMemory(); }

InTool::InTool() : outer_(t_flags.tool) {
  Runtime& r = rt();
  if (outer_ == nullptr) ++r.threads_in_tool;
  t_flags.in_tool = true;
  t_flags.tool = this;
  ++t_flags.hook;
  // Within our own code nothing has come to be active.
  if (outer_ == nullptr && framework().OverridesActive()) DisableOverrides();
}

void InTool::DisableOverrides() {
  InTool* tool = t_flags.tool;
  if (tool == nullptr || tool->guard_ != nullptr) return;
  tool->guard_ = framework().NewOverrideGuard();
  Ref entered(tool->guard_ != nullptr ? PyObject_CallMethodNoArgs(tool->guard_, names.enter) : nullptr);
  if (!entered) {
    PyErr_Clear();
    Py_CLEAR(tool->guard_);
  }
}

InTool::~InTool() {
  if (outer_ == nullptr && interpreter().launch_started != nullptr) interpreter().launch_started();
  if (guard_ != nullptr) {
    ErrorStash stash;
    Ref left(PyObject_CallMethodObjArgs(guard_, names.exit, Py_None, Py_None, Py_None, nullptr));
    if (!left) PyErr_Clear();
    Py_DECREF(guard_);
  }
  if (outer_ == nullptr) --rt().threads_in_tool;
  t_flags.in_tool = outer_ != nullptr;
  t_flags.tool = outer_;
  ++t_flags.hook;
}

}  // namespace msprobe
