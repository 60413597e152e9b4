// Tensors in records: what is appended of one, and what is saved of it now or when its record is kept.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "bindings/python/py.h"
#include "capture/record.h"

namespace msprobe {

bool IsTensor(PyObject* o);       // of any kind
bool IsPlainTensor(PyObject* o);  // exactly Tensor or Parameter

/// What is shown of a tensor whose statistics are those of another one.
struct TensorLabel {
  const char* type = nullptr;   // class; of static storage, as the next
  const char* dtype = nullptr;  // "torch.qint8"
  PyObject* shape = nullptr;    // tuple of ints; null: that of the tensor
  bool requires_grad = false;
  std::string_view extra;  // further members, JSON text without braces
  std::string_view file;   // where it was saved
};

/// Statistics, and the checksum where it is asked for, of elements in host memory.
void ComputeValues(const TensorView& view, bool checksums, TensorRecord* t);

/// Appends `t`, of this shape where the label has none.
void AppendTensor(Record* record, TensorRecord t, const int64_t* shape, int ndim, const TensorLabel* label);

/// What the record holds undecided (capture/save_policy.h) is saved, or let go.
void SavePending(Record* record);
void DropPending(Record* record);
/// For a value that Python describes: keeps it when the record decides later; otherwise the name, without ending, of
/// the file that Python is to write, or None. The value stands at the record's end next.
Ref FileForPython(Record* record, PyObject* value);

/// A reference that may be let go on any thread.
std::shared_ptr<void> Shared(PyObject* object);

}  // namespace msprobe
