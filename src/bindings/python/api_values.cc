#include "bindings/python/api_values.h"

#include <algorithm>

#include "bindings/python/framework.h"
#include "bindings/python/tensor_record.h"
#include "bindings/python/values.h"

namespace msprobe {
namespace {

bool Has(const std::vector<int>& positions, Py_ssize_t i) {
  return std::find(positions.begin(), positions.end(), static_cast<int>(i)) != positions.end();
}

template <typename Visit>
void EachPositional(const CallArgs& a, Visit visit) {
  Py_ssize_t i = 0;
  if (a.self != nullptr) visit(i++, a.self);
  if (a.tuple != nullptr) {
    for (Py_ssize_t k = a.skip; k < PyTuple_GET_SIZE(a.tuple); ++k) visit(i++, PyTuple_GET_ITEM(a.tuple, k));
  } else {
    for (Py_ssize_t k = 0; k < a.count; ++k) visit(i++, a.vector[k]);
  }
}

template <typename Visit>
void EachKeyword(const CallArgs& a, Visit visit) {
  if (a.kwargs != nullptr) {
    PyObject *key, *value;
    Py_ssize_t position = 0;
    while (PyDict_Next(a.kwargs, &position, &key, &value)) {
      const Ref held_key = Ref::Borrow(key), held = Ref::Borrow(value);
      visit(key, value);
    }
  } else if (a.names != nullptr) {
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(a.names); ++k)
      visit(PyTuple_GET_ITEM(a.names, k), a.vector[a.count + k]);
  }
}

/// What a communication fills holds what was sent, even where that is what its memory held before. A result that lies
/// in the memory of an argument (a gathered buffer that holds its own part) keeps what was there.
void NoteFilled(const ApiSpec& spec, const CallArgs& args) {
  PyObject* filled = nullptr;
  std::vector<uint64_t> others;
  const auto look = [&](PyObject* value, bool is_filled) {
    TensorMemory memory;
    if (is_filled) {
      filled = value;
    } else if (IsPlainTensor(value) && framework().MemoryOf(value, &memory)) {
      others.push_back(memory.storage);
    }
  };
  EachPositional(args, [&](Py_ssize_t i, PyObject* value) { look(value, Has(spec.ignored_args, i)); });
  EachKeyword(args, [&](PyObject* key, PyObject* value) {
    look(value, PyUnicode_Check(key) && PyUnicode_CompareWithASCIIString(key, spec.ignored_keyword.c_str()) == 0);
  });
  TensorMemory memory;
  if (filled == nullptr || !IsPlainTensor(filled) || !framework().MemoryOf(filled, &memory)) return;
  if (std::find(others.begin(), others.end(), memory.storage) == others.end()) framework().NoteWritten(filled);
}

}  // namespace

void RecordInputs(const ApiSpec& spec, const CallArgs& args, Record* record) {
  record->KeyLiteral("input_args");
  record->BeginList();
  EachPositional(args, [&](Py_ssize_t i, PyObject* value) {
    Has(spec.ignored_args, i) ? record->Null() : RecordValue(record, value, nullptr, 1);
  });
  record->EndList();
  record->KeyLiteral("input_kwargs");
  record->BeginDict();
  EachKeyword(args, [&](PyObject* key, PyObject* value) {
    RecordKey(record, key);
    const bool ignored = !spec.ignored_keyword.empty() && PyUnicode_Check(key) &&
                         PyUnicode_CompareWithASCIIString(key, spec.ignored_keyword.c_str()) == 0;
    ignored ? record->Null() : RecordValue(record, value, key, 1);
  });
  record->EndDict();
  PyObject* object = spec.attributes_of != nullptr ? FirstArgument(args) : nullptr;
  PyObject* attributes = object != nullptr ? spec.attributes_of(object) : nullptr;
  if (attributes == nullptr) return;
  record->KeyLiteral("attributes");
  RecordValue(record, attributes, nullptr, 1);
}

void RecordOutput(const ApiSpec& spec, const CallArgs& args, PyObject* result, Record* record) {
  record->KeyLiteral("output");
  // An asynchronous call of mint.distributed returns a handle: what its arguments will hold is not there yet.
  const bool filled = spec.fills && (result == Py_None || PyLong_Check(result));
  if (spec.distributed || filled) {
    // Collectives write into their arguments.
    if (!spec.ignored_args.empty()) NoteFilled(spec, args);
    record->BeginList();
    EachPositional(args, [&](Py_ssize_t i, PyObject* value) {
      Has(spec.ignored_outputs, i) ? record->Null() : RecordValue(record, value, nullptr, 1);
    });
    EachKeyword(args, [&](PyObject*, PyObject* value) { RecordValue(record, value, nullptr, 1); });
    record->EndList();
  } else if (!spec.ignored_outputs.empty() && PyTuple_CheckExact(result)) {
    record->BeginList();
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(result); ++i) {
      Has(spec.ignored_outputs, i) ? record->Null() : RecordValue(record, PyTuple_GET_ITEM(result, i), nullptr, 1);
    }
    record->EndList();
  } else {
    RecordAsList(record, result);
  }
}

std::vector<PyObject*> PositionalArguments(const CallArgs& args) {
  std::vector<PyObject*> found;
  EachPositional(args, [&](Py_ssize_t, PyObject* value) { found.push_back(value); });
  return found;
}

PyObject* FirstArgument(const CallArgs& a) {
  if (a.self != nullptr) return a.self;
  if (a.tuple != nullptr) return PyTuple_GET_SIZE(a.tuple) > 0 ? PyTuple_GET_ITEM(a.tuple, 0) : nullptr;
  return a.count > 0 ? a.vector[0] : nullptr;
}

PyObject* OutArgument(const CallArgs& args) {
  PyObject* out = nullptr;
  EachKeyword(args, [&](PyObject* key, PyObject* value) {
    if (PyUnicode_Check(key) && PyUnicode_CompareWithASCIIString(key, "out") == 0) out = value;
  });
  return out;
}

bool AsksForInPlace(const CallArgs& args) {
  bool asks = false;
  EachKeyword(args, [&](PyObject* key, PyObject* value) {
    if (!PyUnicode_Check(key)) return;
    asks |= value == Py_True && PyUnicode_CompareWithASCIIString(key, "inplace") == 0;
    asks |= value != Py_None && PyUnicode_CompareWithASCIIString(key, "out") == 0;
  });
  return asks;
}

bool DropsNothing(const CallArgs& args) {
  PyObject* p = nullptr;
  EachKeyword(args, [&](PyObject* key, PyObject* value) {
    if (PyUnicode_Check(key) && PyUnicode_CompareWithASCIIString(key, "p") == 0) p = value;
  });
  EachPositional(args, [&](Py_ssize_t i, PyObject* value) {
    if (i == 1) p = value;
  });
  if (p == nullptr || !PyNumber_Check(p)) return false;
  const double value = PyFloat_AsDouble(p);
  if (PyErr_Occurred()) PyErr_Clear();
  return value == 0;
}

}  // namespace msprobe
