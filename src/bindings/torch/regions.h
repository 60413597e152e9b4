// Code that torch.compile has compiled, or is about to: left alone, so that it computes what it computes without the
// tool.
#pragma once

#include "bindings/python/api_spec.h"

namespace msprobe {

/// Run around each call of set_eval_frame(callback), by which a thread enters and leaves compiled code. In between the
/// compiler looks at every function that runs, so functions of our own run before it begins and after it ends.
void BeforeSetEvalFrame(const CallArgs& args);
void AfterSetEvalFrame(const CallArgs& args, PyObject* result);
/// The functions of Python that know about regions: callback -> name of the region that begins, or None; () -> whether
/// the compiler's own code runs now; (0: nothing, 1: what guards look at, 2: everything) hides hooks that Python made.
void SetRegionCallbacks(PyObject* set_eval_frame, PyObject* enter, PyObject* pause, PyObject* hide);
/// From now, until now: also while nothing is recorded, for others that have hooks.
void WatchRegions(bool on);
bool RegionsAreWatched();
/// A function is being traced (from now, until now): it must find the functions and modules as they are without us.
void HideFromCompiler(bool hide);
/// At start() and stop(): whatever region a thread was in when recording ended is over.
void ForgetRegions();

}  // namespace msprobe
