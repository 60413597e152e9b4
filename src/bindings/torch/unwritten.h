// Memory that torch.empty and its like gave and that nobody has written since: what is in it says nothing of the run.
#pragma once

#include "bindings/python/api_spec.h"
#include "capture/record.h"
#include "tensor/kernels/tensor_view.h"

namespace msprobe {

/// After a call of a function that allocates: keeps what is in the memory of its result, or a sample of that.
void AfterAllocation(const CallArgs& args, PyObject* result);

/// Around a call that resizes its first argument: memory that is added to a tensor's is such, too.
void BeforeResize(const CallArgs& args);
void AfterResize(const CallArgs& args, PyObject* result);

/// How much of what is in `view` is what its allocation found there. Writes need not be seen, whoever writes.
Unwritten UnwrittenOf(const TensorView& view, bool on_host);

/// Every element of `view` was written, whatever is in it now: values may come back to where they were.
void NoteWritten(const TensorView& view, bool on_host);

/// At start and stop: what is still unwritten in a later step is so there, too.
void ForgetDeadAllocations();

/// Of memory that is not read here: storage -> sample; storage, sample -> whether it is the same.
void SetDeviceSamples(PyObject* take, PyObject* is_same);

}  // namespace msprobe
