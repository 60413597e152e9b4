// Values of a call as lines of a record.
#pragma once

#include <string>

#include "bindings/py.h"
#include "capture/record.h"

namespace msprobe {

/// Appends `value`; never raises: what cannot be read becomes null and is counted. `key` is the name under which a dict
/// or keyword holds the value, or null: "dtype" and "device" decide how some values are shown.
void RecordValue(Record* record, PyObject* value, PyObject* key = nullptr, int depth = 0);

/// The items of a tuple as a list; another object as a list of one.
void RecordAsList(Record* record, PyObject* value);

/// A dict of keyword arguments as an object; null as an empty one.
void RecordKeywords(Record* record, PyObject* kwargs);

/// Key of a dict as text; `index` among the keys tells apart those of which only the class is shown.
void RecordKey(Record* record, PyObject* key, size_t index = 0);

bool IsTensor(PyObject* o);       // of any kind
bool IsPlainTensor(PyObject* o);  // exactly Tensor or Parameter

/// The first tensor found by going into first items of lists and tuples and first tensors of dicts; borrowed, or null.
PyObject* FirstTensor(PyObject* value);

/// What is shown of a tensor whose statistics are those of another one.
struct TensorLabel {
  const char* type = nullptr;   // class; of static storage, as the next
  const char* dtype = nullptr;  // "torch.qint8"
  PyObject* shape = nullptr;    // tuple of ints; null: that of the tensor
  bool requires_grad = false;
  std::string_view extra;  // further members, JSON text without braces
  std::string_view file;   // where it was saved
};

/// tensors.cc: a plain tensor whose memory may be read here, or which a device reduces. False: nothing was appended,
/// describe it in Python.
bool RecordPlainTensor(Record* record, PyObject* tensor, const TensorLabel* label = nullptr);
/// One without values.
void RecordLabel(Record* record, const TensorLabel& label);

/// What the record holds undecided (capture/save_policy.h) is saved, or let go.
void SavePending(Record* record);
void DropPending(Record* record);
/// For a value that Python describes: keeps it when the record decides later; otherwise the name, without ending, of
/// the file that Python is to write, or None. The value stands at the record's end next.
Ref FileForPython(Record* record, PyObject* value);

/// A tensor that Python made of an unusual one; `file` with ending. False: it is not saved.
bool SavePlainTensor(PyObject* tensor, const std::string& file);

/// (Max, Min, Mean, Norm, CRC-32 text) of a plain tensor, or null with a Python error. New reference.
PyObject* StatisticsOf(PyObject* tensor);

}  // namespace msprobe
