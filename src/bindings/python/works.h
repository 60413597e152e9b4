// Asynchronous communication: what arrives is recorded when somebody has waited for it.
#pragma once

#include "bindings/python/api_spec.h"

namespace msprobe {

/// When the call goes on behind its return its record stays open until the works it returned are done; false when the
/// values are there already.
bool KeepUntilDone(const ApiEvent& event, const CallArgs& args, PyObject* result);
/// Runs after Work.wait() of any work.
void AfterWait(const CallArgs& args, PyObject* result);
/// Records what has ended without a wait that was seen. Waits for nothing.
void CollectDone();
/// The step ends: what is still open gets no values, and is counted.
void GiveUpOpenWorks();
bool AnyOpenWork();

}  // namespace msprobe
