#include "bindings/python/frames.h"

#include <frameobject.h>

#include <unordered_map>
#include <unordered_set>

#include "bindings/python/runtime.h"

namespace msprobe {
namespace {

std::unordered_set<const void*>& Trampolines() {
  static auto* set = new std::unordered_set<const void*>;
  return *set;
}

struct FrameHash {
  size_t operator()(const Frame& f) const {
    return (reinterpret_cast<uintptr_t>(f.code) ^ static_cast<size_t>(f.instruction) * 0x9e3779b9u) *
           0x9e3779b97f4a7c15ull;
  }
};

int Instruction(PyFrameObject* frame) {
#if PY_VERSION_HEX >= 0x030b0000
  return PyFrame_GetLasti(frame);
#elif PY_VERSION_HEX >= 0x030a0000
  return frame->f_lasti * 2;  // counted in instructions of two bytes
#else
  return frame->f_lasti;
#endif
}

std::string Utf8(PyObject* text) {
  const std::string_view utf8 = TextOf(text);
  PyErr_Clear();
  return std::string(utf8);
}

std::string Stripped(const std::string& s) {
  const size_t begin = s.find_first_not_of(" \t\r\n\f\v"), end = s.find_last_not_of(" \t\r\n\f\v");
  return begin == std::string::npos ? std::string() : s.substr(begin, end - begin + 1);
}

// "File path, line n, in function, \n source"; empty for frames that are not shown.
std::string LineOf(const Frame& frame) {
  auto* code = static_cast<PyCodeObject*>(const_cast<void*>(frame.code));
  if (Trampolines().contains(code)) return {};
  const std::string file = Utf8(code->co_filename);
  const std::string& own = interpreter().own_directory;
  if (!own.empty() && file.compare(0, own.size(), own) == 0) return {};
  const int line = PyCode_Addr2Line(code, frame.instruction);
  Ref source(PyObject_CallFunction(interpreter().get_line, "Oi", code->co_filename, line));
  if (!source) PyErr_Clear();
  const std::string text = Stripped(Utf8(source.get()));
  if (text.empty()) return {};
  return "File " + file + ", line " + std::to_string(line) + ", in " + Utf8(code->co_name) + ", \n " + text;
}

// At once, so that the text is in the files when the process dies. Looking up a line may run other threads.
void ResolveStack(uint32_t id) {
  static auto* lines = new std::unordered_map<Frame, std::string, FrameHash>;
  InTool guard;
  StackTable& stacks = rt().recorder->stacks();
  auto lock = rt().recorder->lock();
  const auto span = stacks.Frames(id);
  const std::vector<Frame> frames(span.begin(), span.end());
  lock.unlock();
  StackLines text;
  for (const Frame& frame : frames) {
    auto it = lines->find(frame);
    if (it == lines->end()) {
      std::string line = LineOf(frame);
      it = lines->emplace(frame, std::move(line)).first;
    }
    if (!it->second.empty()) text.push_back(it->second);
  }
  lock.lock();
  stacks.SetText(id, std::move(text));
}

}  // namespace

void MarkTrampoline(PyObject* code) { Trampolines().insert(code); }

void RecordStack(const OpName& name, Record* record) {
  if (!rt().options.extra_info) return;
  thread_local std::vector<Frame> frames;  // NOLINT(clang-diagnostic-exit-time-destructors): owns no object
  frames.clear();
  PyFrameObject* frame = PyThreadState_GetFrame(PyThreadState_Get());
  while (frame != nullptr) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    frames.push_back({code, Instruction(frame)});
    Py_DECREF(code);  // the frame keeps it
    PyFrameObject* back = PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = back;
  }
  bool is_new = false;
  auto lock = rt().recorder->lock();
  StackTable& stacks = rt().recorder->stacks();
  const uint32_t id = stacks.Intern(frames, &is_new);
  if (record != nullptr && rt().trigger.active()) {
    record->stack = id;
  } else {
    stacks.AddUse(id, name);
  }
  if (!is_new) return;
  lock.unlock();
  // Code objects are kept for good, so that an address means one of them; frames are not, they would keep activations
  // alive.
  for (const Frame& f : frames) Py_INCREF(static_cast<PyObject*>(const_cast<void*>(f.code)));
  if (Shielded([&] { ResolveStack(id); })) return;
  lock.lock();
  stacks.GiveUpText(id);
}

}  // namespace msprobe
