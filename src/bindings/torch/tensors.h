// Tensors read where they are, through the DLPack table or the attributes of the object.
#pragma once

#include <string>

#include "bindings/python/py.h"
#include "bindings/python/tensor_record.h"
#include "capture/record.h"

namespace msprobe {

/// Appends a plain tensor whose memory may be read here, or which a device reduces. False: nothing was appended,
/// describe it in Python.
bool RecordPlainTensor(Record* record, PyObject* tensor, const TensorLabel* label = nullptr);

/// One that the record held undecided is saved; when it has changed since that is counted instead.
void SaveHeldPlainTensor(Record* record, const HeldValue& value, const std::string& name);

/// A tensor that Python made of an unusual one; `file` with ending. False: it is not saved.
bool SavePlainTensor(PyObject* tensor, const std::string& file);

/// (Max, Min, Mean, Norm, CRC-32 text) of a plain tensor, or null with a Python error. New reference.
PyObject* StatisticsOf(PyObject* tensor);

}  // namespace msprobe
