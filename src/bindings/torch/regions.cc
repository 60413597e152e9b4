#include "bindings/torch/regions.h"

#include <utility>

#include "bindings/python/api_site.h"
#include "bindings/python/hook_object.h"
#include "bindings/python/runtime.h"
#include "bindings/torch/modules.h"

namespace msprobe {
namespace {

PyObject *on_enter = nullptr, *on_pause = nullptr, *on_hide = nullptr;
bool watched = false;  // also while nothing is recorded

enum class State : uint8_t { kOutside, kInside, kCompilersOwn };

struct ThreadRegion {
  State state = State::kOutside;
  uint64_t run = 0;
};
thread_local ThreadRegion t_region;
thread_local ThreadRegion t_before_tracing;
uint64_t run = 1;  // of start()
int inside = 0;    // threads in compiled code
bool tracing = false;
int hidden_from_compiler = 0;  // how much

// The hooks that Python knows of.
void TellPython(int how_much) {
  if (on_hide == nullptr) return;
  const InTool guard;
  Ref number(PyLong_FromLong(how_much)), done(number ? PyObject_CallOneArg(on_hide, number.get()) : nullptr);
  if (!done) PyErr_Clear();  // it is guarded there
}

// The dicts of a module are exchanged by both: what is hidden last is shown first.
void Hide() {
  const bool some = inside > 0;
  const int now = tracing ? 2 : some ? 1 : 0, before = std::exchange(hidden_from_compiler, now);
  if (now < before) TellPython(now);
  HideApis(tracing ? HiddenApis::kAll : some ? HiddenApis::kVisible : HiddenApis::kNone);
  HideModuleHooks(tracing ? HiddenHooks::kAll : some ? HiddenHooks::kCrowded : HiddenHooks::kNone);
  if (now > before) TellPython(now);
}

void Enter(State state) {
  const State before = std::exchange(t_region.state, state);
  t_flags.compiled = state != State::kOutside;
  if (before == state) return;
  if (before == State::kCompilersOwn) --t_flags.api_depth;
  if (state == State::kCompilersOwn) ++t_flags.api_depth;
  t_flags.in_region = state == State::kInside;
  if ((before == State::kOutside) == (state == State::kOutside)) return;
  inside += state != State::kOutside ? 1 : -1;
  Hide();
}

// stop() may have come while this thread was inside.
ThreadRegion& Region() {
  if (t_region.run != run) {
    if (t_region.state == State::kCompilersOwn) --t_flags.api_depth;
    t_flags.in_region = false;
    t_region = {State::kOutside, run};
    t_flags.compiled = false;
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
  // Where it was off already, the evaluator has put it aside by itself, and puts it back (a region with
  // fullgraph=True).
  if (Region().state != State::kInside || PyCallable_Check(args.vector[0]) || !PyCallable_Check(result)) return;
  InTool guard;
  Enter(IsCompilersOwn() ? State::kCompilersOwn : State::kOutside);
}

void SetRegionCallbacks(PyObject* set_eval_frame, PyObject* enter, PyObject* pause, PyObject* hide) {
  CompilerAside::Use(set_eval_frame);
  Py_INCREF(enter), Py_INCREF(pause), Py_INCREF(hide);
  Py_XSETREF(on_enter, enter);
  Py_XSETREF(on_pause, pause);
  Py_XSETREF(on_hide, hide);
}

bool RegionsAreWatched() { return watched; }

void WatchRegions(bool on) {
  watched = on;
  if (!rt().running) ForgetRegions();
}

// The evaluator of frames puts back by itself what it has exchanged for tracing: set_eval_frame() does not tell of it.
void HideFromCompiler(bool hide) {
  if (hide) t_before_tracing = Region();
  tracing = hide;
  if (!hide && t_before_tracing.run == run) Enter(t_before_tracing.state);
  if (!hide) t_before_tracing = {};
  Hide();
}

void ForgetRegions() {
  ++run;
  inside = 0;
  tracing = false;
  Hide();
}

}  // namespace msprobe
