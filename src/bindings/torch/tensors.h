// Tensors read where they are, through the DLPack table or the attributes of the object.
#pragma once

#include "bindings/python/host_tensor.h"
#include "bindings/python/py.h"
#include "capture/record.h"

namespace msprobe {

/// Appends a plain tensor whose memory may be read here, or which a device reduces. False: nothing was appended,
/// describe it in Python.
bool RecordPlainTensor(Record* record, PyObject* tensor, const TensorLabel* label = nullptr);

/// A plain tensor whose memory may be read here and now.
bool LookAtHostTensor(PyObject* tensor, TensorLook* look);
/// A call wrote every element of a plain tensor (unwritten.h).
void NoteTensorWritten(PyObject* tensor);
/// Of one that LookAtHostTensor() has found to be so with its elements at `data`: asks less where they still are there.
bool LookAgain(PyObject* tensor, const char* data, TensorLook* look);

}  // namespace msprobe
