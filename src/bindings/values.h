// Values of a call as lines of a record.
#pragma once

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

/// Key of a dict as text.
void RecordKey(Record* record, PyObject* key);

bool IsTensor(PyObject* o);       // of any kind
bool IsPlainTensor(PyObject* o);  // exactly Tensor or Parameter

/// The first tensor found by going into first items of lists and tuples and first tensors of dicts; borrowed, or null.
PyObject* FirstTensor(PyObject* value);

/// tensors.cc: a plain tensor whose memory may be read here. False: nothing was appended, describe it in Python.
bool RecordPlainTensor(Record* record, PyObject* tensor);

/// (Max, Min, Mean, Norm, CRC-32 text or None) of a plain tensor, or null with a Python error. New reference.
PyObject* StatisticsOf(PyObject* tensor);

}  // namespace msprobe
