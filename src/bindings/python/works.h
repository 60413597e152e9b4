// Asynchronous communication: what arrives is recorded when somebody has waited for it, before he goes on and may
// change the memory. Who waits, and how, is seen in bindings/torch/work_hooks.h.
#pragma once

#include <vector>

#include "bindings/python/api_spec.h"

namespace msprobe {

/// When the call goes on behind its return its record stays open until the works it returned are done; false when the
/// values are there already.
bool KeepUntilDone(const ApiEvent& event, const CallArgs& args, PyObject* result);

/// Somebody has waited for this work, of which nothing may be known; `failed`: it raised.
void WorkWaited(PyObject* work, bool failed);
/// He may only have ordered the work of a device behind it, or asked without an answer: what has ended is recorded.
void WorkLookedAt(PyObject* work, bool ordered_on_device);
/// A future that tells of these works.
void AddFuture(PyObject* future, const std::vector<Ref>& works);
/// Those that a future tells of; empty when none is known.
std::vector<Ref> WorksToldBy(PyObject* future);
/// Whether those calls fill memory of the host only. On a device a future is fulfilled when the work is ordered.
bool FillsHostMemory(PyObject* work);
/// A block of communications that a call is in: it is done when the work is that the end of the block gives.
struct WorkBlock {
  Ref group;    // null: none
  Ref entries;  // what is put aside in it; another object in the next block of the group
  Ref entry;    // of this call; null: it was handed to the device, whose block it is
  Ref tensor;   // of the entry: the one to be filled
};
/// A block of the group begins: what an earlier one has left never comes.
void BlockBegins(PyObject* group);
/// What was put aside for these tensors begins (null: all of the block). The result null: it raised; no work: it is
/// done.
void BlockEnds(PyObject* group, PyObject* tensors, PyObject* result);
/// Whether this entry of a block is that of a known call.
bool IsEntryKnown(PyObject* entry);
/// A call is about to write into tensors: what an open work has filled is read first.
void ReadBeforeWrite(const CallArgs& args);

/// Records what has ended without a wait that was seen. Waits for nothing.
void CollectDone();
/// The step ends: what is still open gets no values, and is counted.
void GiveUpOpenWorks();
bool AnyOpenWork();

/// Called with each class of works whose calls are kept. Set once.
extern void (*watch_work_type)(PyTypeObject* type);
/// Finds the block of the call that has just returned. Set with it.
extern WorkBlock (*block_of_call)(const CallArgs& args);

}  // namespace msprobe
