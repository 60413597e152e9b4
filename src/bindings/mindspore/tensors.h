// Tensors of MindSpore read where they are: no operator of the framework runs, so that nothing is added to what the
// training computes and no kernel is missing. To read one waits until the kernel that fills it has run.
#pragma once

#include "bindings/python/host_tensor.h"
#include "bindings/python/py.h"
#include "capture/record.h"

namespace msprobe {

/// Appends a tensor. False: nothing was appended, describe it in Python.
bool RecordMindSporeTensor(Record* record, PyObject* tensor, const TensorLabel* label);
bool LookAtMindSporeTensor(PyObject* tensor, TensorLook* look);
/// A parameter that gets no gradient, as the running mean of a norm: operators change it without a name that says so.
bool IsBuffer(PyObject* tensor);

// To read a tensor waits for all operators that were launched, not only for the one that fills it, and the thread that
// waits keeps a processor busy. So what is recorded only takes a reference, and is read when the training waits itself,
// at the end of a backward pass, at stop(), and before anything that may change a tensor where it lies.

/// While it lives, tensors that this thread records are gradients. Nothing of MindSpore writes into a gradient that
/// somebody holds.
class GradientsLater {
 public:
  GradientsLater();
  ~GradientsLater();
  GradientsLater(const GradientsLater&) = delete;
  GradientsLater& operator=(const GradientsLater&) = delete;
};

/// From here on values are read later: at start(), and when a forward pass begins that will be differentiated.
void ReadLaterAgain();
void BeginBackward();
bool InBackward();
/// A backward pass is over. What waits is read, and what is recorded until the next forward pass is read at once: here
/// optimizers run, which change parameters in ways of their own.
void ReadAfterBackward();
/// A call begins that may change tensors, of which `written` (may be null) may be one.
void ReadBeforeWrite(PyObject* written = nullptr);
/// Reads what waits. `youngest`: a tensor that was made after those, if one is known.
void ReadTensors(PyObject* youngest = nullptr);

}  // namespace msprobe
