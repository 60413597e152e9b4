#include "bindings/torch/regions.h"

#include <utility>

#include "bindings/python/api_site.h"
#include "bindings/python/runtime.h"
#include "bindings/torch/modules.h"

namespace msprobe {
namespace {

PyObject *on_enter = nullptr, *on_pause = nullptr;

enum class State : uint8_t { kOutside, kInside, kCompilersOwn };

struct ThreadRegion {
  State state = State::kOutside;
  uint64_t run = 0;
};
thread_local ThreadRegion t_region;
uint64_t run = 1;  // of start()
int inside = 0;    // threads in compiled code
bool tracing = false;

void Hide() {
  const bool some = inside > 0;
  HideApis(tracing ? HiddenApis::kAll : some ? HiddenApis::kVisible : HiddenApis::kNone);
  HideModuleHooks(tracing ? HiddenHooks::kAll : some ? HiddenHooks::kCrowded : HiddenHooks::kNone);
}

void Enter(State state) {
  const State before = std::exchange(t_region.state, state);
  if (before == state) return;
  if (before == State::kCompilersOwn) --t_flags.api_depth;
  if (state == State::kCompilersOwn) ++t_flags.api_depth;
  if ((before == State::kOutside) == (state == State::kOutside)) return;
  inside += state != State::kOutside ? 1 : -1;
  Hide();
}

// stop() may have come while this thread was inside.
ThreadRegion& Region() {
  if (t_region.run != run) {
    if (t_region.state == State::kCompilersOwn) --t_flags.api_depth;
    t_region = {State::kOutside, run};
  }
  return t_region;
}

bool IsCompilersOwn() {
  Ref answer(PyObject_CallNoArgs(on_pause));
  if (!answer) PyErr_Clear();
  return answer.get() == Py_True;
}

void CountEntered(PyObject* callback) {
  Ref name(PyObject_CallOneArg(on_enter, callback));
  const char* text = name && PyUnicode_Check(name.get()) ? PyUnicode_AsUTF8(name.get()) : nullptr;
  if (text != nullptr && rt().running) NoteSkip(text, text);
  PyErr_Clear();
}

}  // namespace

void BeforeSetEvalFrame(const CallArgs& args) {
  if (args.count != 1 || on_enter == nullptr || t_flags.in_tool || !PyCallable_Check(args.vector[0])) return;
  InTool guard;
  if (Region().state != State::kInside) CountEntered(args.vector[0]);
  Enter(State::kInside);
}

void AfterSetEvalFrame(const CallArgs& args, PyObject* result) {
  if (result == nullptr || args.count != 1 || on_pause == nullptr || t_flags.in_tool) return;
  if (Region().state != State::kInside || PyCallable_Check(args.vector[0])) return;
  InTool guard;
  Enter(IsCompilersOwn() ? State::kCompilersOwn : State::kOutside);
}

void SetRegionCallbacks(PyObject* enter, PyObject* pause) {
  Py_INCREF(enter), Py_INCREF(pause);
  Py_XSETREF(on_enter, enter);
  Py_XSETREF(on_pause, pause);
}

void HideFromCompiler(bool hide) {
  tracing = hide;
  Hide();
}

void ForgetRegions() {
  ++run;
  inside = 0;
  tracing = false;
  Hide();
}

}  // namespace msprobe
