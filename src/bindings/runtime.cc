#include "bindings/runtime.h"

#include <chrono>
#include <thread>

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

void InitNames() {
  if (names.requires_grad != nullptr) return;
#define MSP_NAME(x) names.x = PyUnicode_InternFromString(#x)
  MSP_NAME(requires_grad), MSP_NAME(grad_fn), MSP_NAME(grad), MSP_NAME(register_hook), MSP_NAME(register_prehook);
  MSP_NAME(view_as), MSP_NAME(data_ptr), MSP_NAME(dtype), MSP_NAME(shape), MSP_NAME(stride), MSP_NAME(is_neg);
  MSP_NAME(is_conj), MSP_NAME(is_cpu), MSP_NAME(is_meta), MSP_NAME(data), MSP_NAME(untyped_storage), MSP_NAME(nbytes),
      MSP_NAME(next_functions);
  MSP_NAME(expand_as), MSP_NAME(output_nr), MSP_NAME(inplace), MSP_NAME(variable), MSP_NAME(numel), MSP_NAME(p);
  MSP_NAME(detach), MSP_NAME(clone), MSP_NAME(forward), MSP_NAME(co_filename), MSP_NAME(hooks_dict_ref),
      MSP_NAME(remove);
#undef MSP_NAME
  names.version = PyUnicode_InternFromString("_version");
  names.dict = PyUnicode_InternFromString("__dict__");
  names.forward_pre_hooks = PyUnicode_InternFromString("_forward_pre_hooks");
  names.modules = PyUnicode_InternFromString("_modules");
  names.sequence_nr = PyUnicode_InternFromString("_sequence_nr");
  names.is_compiling_flag = PyUnicode_InternFromString("_is_compiling_flag");
  names.code = PyUnicode_InternFromString("__code__");
  names.parameters = PyUnicode_InternFromString("_parameters");
  names.enter = PyUnicode_InternFromString("__enter__");
  names.exit = PyUnicode_InternFromString("__exit__");
  names.fields = PyUnicode_InternFromString("_fields");
  names.dataclass_fields = PyUnicode_InternFromString("__dataclass_fields__");
  names.signature = PyUnicode_InternFromString("__signature__");
  names.base = PyUnicode_InternFromString("_base");
  names.is_full_backward_hook = PyUnicode_InternFromString("_is_full_backward_hook");
  names.backward_hooks = PyUnicode_InternFromString("_backward_hooks");
}

std::string TakeError() {
  PyObject *type, *value, *trace;
  // Ctrl-C while our code ran is the script's: it comes again when we are done.
  if (PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) PyErr_SetInterrupt();
  PyErr_Fetch(&type, &value, &trace);
  if (type == nullptr) return "unknown error";
  const Ref held_type(type), held(value), held_trace(trace);
  std::string text = reinterpret_cast<PyTypeObject*>(type)->tp_name;
  if (value != nullptr) {
    Ref str(PyObject_Str(value));
    const char* utf8 = str ? PyUnicode_AsUTF8(str.get()) : nullptr;
    if (utf8 != nullptr) text.append(": ").append(utf8);
    PyErr_Clear();
  }
  return text;
}

bool AttrIsTrue(PyObject* o, PyObject* name) {
  Ref value(PyObject_GetAttr(o, name));
  if (!value) PyErr_Clear();
  return value.get() == Py_True;
}

bool Runtime::Grad() const {
  Ref on(PyObject_CallNoArgs(is_grad_enabled));
  if (!on) PyErr_Clear();
  return on.get() == Py_True;
}

bool Runtime::Compiling() const {
  if (compiler != nullptr && PyDict_GetItem(compiler, names.is_compiling_flag) == Py_True) return true;
  if (dispatch_depth == nullptr) return false;
  Ref depth(PyObject_CallNoArgs(dispatch_depth));
  bool found = false;
  if (depth && PyLong_AsLong(depth.get()) > 0) {
    for (PyObject* key : {functional_key, proxy_key}) {
      Ref mode(PyObject_CallOneArg(dispatch_mode, key));
      found |= mode && mode.get() != Py_None;
    }
  }
  PyErr_Clear();
  return found;
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

void NoteNoMemory() noexcept {
  if (rt().recorder != nullptr) rt().recorder->SetMemoryRanOut();
  ++rt().without_memory;
}

void CountNoMemory() {
  Runtime& r = rt();
  if (r.without_memory == 0) return;
  const std::string kind = "there was not enough memory";
  r.skipped[kind] += r.without_memory;
  r.without_memory = 0;
  r.skip_examples.try_emplace(kind, "a value, a name or a call stack");
}

void NoteFault(const char* what) noexcept {
  if (rt().recorder != nullptr) rt().recorder->SetMemoryRanOut();  // records may be half, here too
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

Status NoMemory() noexcept { return InternalError("out of memory"); }

InTool::InTool() : outer_(t_flags.tool) {
  Runtime& r = rt();
  if (outer_ == nullptr) ++r.threads_in_tool;
  t_flags.in_tool = true;
  t_flags.tool = this;
  if (r.mode_depth == nullptr) return;
  Ref depth(PyObject_CallNoArgs(r.mode_depth));
  if (!depth) PyErr_Clear();
  if (depth && PyLong_AsLong(depth.get()) != 0) DisableOverrides();
}

void InTool::DisableOverrides() {
  InTool* tool = t_flags.tool;
  if (tool == nullptr || tool->guard_ != nullptr || rt().disable_modes == nullptr) return;
  tool->guard_ = PyObject_CallNoArgs(rt().disable_modes);
  Ref entered(tool->guard_ != nullptr ? PyObject_CallMethodNoArgs(tool->guard_, names.enter) : nullptr);
  if (!entered) {
    PyErr_Clear();
    Py_CLEAR(tool->guard_);
  }
}

InTool::~InTool() {
  if (guard_ != nullptr) {
    ErrorStash stash;
    Ref left(PyObject_CallMethodObjArgs(guard_, names.exit, Py_None, Py_None, Py_None, nullptr));
    if (!left) PyErr_Clear();
    Py_DECREF(guard_);
  }
  if (outer_ == nullptr) --rt().threads_in_tool;
  t_flags.in_tool = outer_ != nullptr;
  t_flags.tool = outer_;
}

}  // namespace msprobe
