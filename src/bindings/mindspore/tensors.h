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

/// While it lives, tensors that this thread records are gradients: only their places are taken, and they are read by
/// ReadGradients(). So the backward pass does not wait for each of them, and what only holds references costs nothing.
/// Nothing of MindSpore writes into a gradient that somebody holds.
class GradientsLater {
 public:
  GradientsLater();
  ~GradientsLater();
  GradientsLater(const GradientsLater&) = delete;
  GradientsLater& operator=(const GradientsLater&) = delete;
};
/// Reads what waits. At the end of a backward pass, before code of the user that might change a gradient, and when what
/// is held would take much memory.
void ReadGradients();
bool GradientsWait();

}  // namespace msprobe
