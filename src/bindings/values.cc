#include "bindings/values.h"

#include "bindings/runtime.h"

namespace msprobe {
namespace {

constexpr int kMaxDepth = 400;
constexpr size_t kMaxNodes = 200'000;  // of one op: a list that holds itself must not fill the memory

// What Python says about an object: JSON text, or null when it cannot be read.
void RecordByPython(Record* record, PyObject* function, PyObject* value, PyObject* key) {
  if (function == nullptr) return record->Null();
  const std::string name = FileForPython(record, value);
  Ref file(name.empty() ? Ref::Borrow(Py_None).release() : PyUnicode_DecodeFSDefault(name.c_str()));
  if (!file) PyErr_Clear(), file = Ref::Borrow(Py_None);
  Ref json(PyObject_CallFunctionObjArgs(function, value, key != nullptr ? key : Py_None, file.get(), nullptr));
  Py_ssize_t size = 0;
  const char* text = json ? PyUnicode_AsUTF8AndSize(json.get(), &size) : nullptr;
  if (text == nullptr) {
    const std::string type = Py_TYPE(value)->tp_name;
    NoteSkip("a value of type " + type + " could not be read", record->name.str() + ": " + TakeError());
    return record->Null();
  }
  record->Json({text, static_cast<size_t>(size)});
}

void RecordTypedText(Record* record, const char* type, PyObject* value) {
  Ref text(PyObject_Str(value));
  const char* utf8 = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  if (utf8 == nullptr) {
    PyErr_Clear();
    return record->Null();
  }
  record->Typed(type, utf8);
}

bool KeyIs(PyObject* key, const char* text) {
  return key != nullptr && PyUnicode_Check(key) && PyUnicode_CompareWithASCIIString(key, text) == 0;
}

void RecordList(Record* record, PyObject* list, int depth) {
  record->BeginList();
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(list); ++i) {
    // Held: describing an item may run code of the user that changes the list.
    Ref item = Ref::Borrow(PySequence_Fast_GET_ITEM(list, i));
    RecordValue(record, item.get(), nullptr, depth + 1);
  }
  record->EndList();
}

void RecordDict(Record* record, PyObject* dict, int depth) {
  Ref items(PyMapping_Items(dict));
  if (!items) {
    PyErr_Clear();
    return record->Null();
  }
  record->BeginDict();
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
    PyObject* pair = PySequence_Fast_GET_ITEM(items.get(), i);
    if (!PyTuple_Check(pair) || PyTuple_GET_SIZE(pair) != 2) continue;
    RecordKey(record, PyTuple_GET_ITEM(pair, 0));
    RecordValue(record, PyTuple_GET_ITEM(pair, 1), PyTuple_GET_ITEM(pair, 0), depth + 1);
  }
  record->EndDict();
}

// Named tuples and data classes: an object of their fields.
void RecordFields(Record* record, PyObject* value, PyObject* fields, int depth) {
  Ref list(PySequence_List(fields));
  if (!list) {
    PyErr_Clear();
    return record->Null();
  }
  record->BeginDict();
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list.get()); ++i) {
    PyObject* name = PyList_GET_ITEM(list.get(), i);
    Ref field(PyObject_GetAttr(value, name));
    if (!field) PyErr_Clear();
    RecordKey(record, name);
    RecordValue(record, field ? field.get() : Py_None, name, depth + 1);
  }
  record->EndDict();
}

bool RecordScalar(Record* record, PyObject* value) {
  if (value == Py_None) return record->Null(), true;
  if (PyBool_Check(value)) return record->Bool(value == Py_True), true;
  if (PyLong_CheckExact(value)) {
    int overflow = 0;
    const long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow != 0) return false;
    return record->Int(number), true;
  }
  if (PyFloat_CheckExact(value)) return record->Float(PyFloat_AS_DOUBLE(value)), true;
  if (PyUnicode_CheckExact(value)) {
    Py_ssize_t size = 0;
    const char* text = PyUnicode_AsUTF8AndSize(value, &size);
    if (text == nullptr) {
      PyErr_Clear();
      return false;
    }
    return record->String({text, static_cast<size_t>(size)}), true;
  }
  return false;
}

void RecordOther(Record* record, PyObject* value, PyObject* key, int depth) {
  Runtime& r = rt();
  PyTypeObject* type = Py_TYPE(value);
  const bool named_dtype = KeyIs(key, "dtype") || KeyIs(key, "output_dtype");
  if (type == r.torch_dtype) {
    return named_dtype ? RecordTypedText(record, "torch.dtype", value) : record->EmptyDict();
  }
  if (type == r.torch_device && !KeyIs(key, "device")) return record->EmptyDict();
  if (type == r.torch_size) return RecordByPython(record, r.describe, value, key);
  if (PyTuple_Check(value) && PyObject_HasAttr(value, names.fields)) {
    Ref fields(PyObject_GetAttr(value, names.fields));
    return fields ? RecordFields(record, value, fields.get(), depth) : (PyErr_Clear(), record->Null());
  }
  if (PyObject_HasAttr(reinterpret_cast<PyObject*>(type), names.dataclass_fields)) {
    Ref fields(PyObject_GetAttr(value, names.dataclass_fields));
    return fields ? RecordFields(record, value, fields.get(), depth) : (PyErr_Clear(), record->Null());
  }
  if (PyTuple_Check(value) || PyList_Check(value)) return RecordList(record, value, depth);
  if (PyDict_Check(value)) return RecordDict(record, value, depth);
  RecordByPython(record, r.describe, value, key);
}

}  // namespace

bool IsPlainTensor(PyObject* o) { return Py_TYPE(o) == rt().tensor || Py_TYPE(o) == rt().parameter; }

bool IsTensor(PyObject* o) {
  if (IsPlainTensor(o)) return true;
  if (!PyType_IsSubtype(Py_TYPE(o), rt().tensor)) return false;
  InTool::DisableOverrides();  // it will be asked for its attributes
  return true;
}

void RecordKey(Record* record, PyObject* key) {
  Py_ssize_t size = 0;
  const char* text = PyUnicode_Check(key) ? PyUnicode_AsUTF8AndSize(key, &size) : nullptr;
  if (text != nullptr) return record->Key({text, static_cast<size_t>(size)});
  PyErr_Clear();
  // As json.dumps turns keys into text.
  if (key == Py_None) return record->Key("null");
  if (PyBool_Check(key)) return record->Key(key == Py_True ? "true" : "false");
  Ref str(PyObject_Str(key));
  text = str ? PyUnicode_AsUTF8AndSize(str.get(), &size) : nullptr;
  if (text == nullptr) {
    PyErr_Clear();
    return record->Key("?");
  }
  record->Key({text, static_cast<size_t>(size)});
}

void RecordValue(Record* record, PyObject* value, PyObject* key, int depth) {
  if (depth > kMaxDepth || record->nodes.size() > kMaxNodes) {
    NoteSkip("a value is nested too deeply or too large", record->name.str());
    return record->Null();
  }
  if (IsPlainTensor(value)) {
    if (!RecordPlainTensor(record, value)) RecordByPython(record, rt().describe_tensor, value, key);
    return;
  }
  if (IsTensor(value)) return RecordByPython(record, rt().describe_tensor, value, key);
  const bool special_key = KeyIs(key, "device") || KeyIs(key, "dtype") || KeyIs(key, "output_dtype");
  if (special_key && (PyUnicode_Check(value) || PyLong_Check(value)))
    return RecordByPython(record, rt().describe, value, key);
  if (RecordScalar(record, value)) return;
  if (PyTuple_CheckExact(value) || PyList_CheckExact(value)) return RecordList(record, value, depth);
  if (PyDict_CheckExact(value)) return RecordDict(record, value, depth);
  RecordOther(record, value, key, depth);
}

void RecordAsList(Record* record, PyObject* value) {
  // A named tuple is an object of its fields here, too.
  if (PyTuple_Check(value) && !PyTuple_CheckExact(value) && PyObject_HasAttr(value, names.fields)) {
    return RecordValue(record, value);
  }
  record->BeginList();
  if (PyTuple_Check(value)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); ++i)
      RecordValue(record, PyTuple_GET_ITEM(value, i), nullptr, 1);
  } else {
    RecordValue(record, value, nullptr, 1);
  }
  record->EndList();
}

void RecordKeywords(Record* record, PyObject* kwargs) {
  if (kwargs == nullptr || !PyDict_Check(kwargs) || PyDict_GET_SIZE(kwargs) == 0) return record->EmptyDict();
  RecordDict(record, kwargs, 0);
}

PyObject* FirstTensor(PyObject* value) {
  for (int depth = 0; depth < kMaxDepth; ++depth) {
    if (IsTensor(value)) return value;
    if (PyTuple_Check(value) || PyList_Check(value)) {
      if (PySequence_Fast_GET_SIZE(value) == 0) return nullptr;
      value = PySequence_Fast_GET_ITEM(value, 0);
    } else if (PyDict_Check(value)) {
      PyObject *k, *v, *found = nullptr;
      Py_ssize_t position = 0;
      while (found == nullptr && PyDict_Next(value, &position, &k, &v)) {
        if (IsTensor(v)) found = v;
      }
      if (found == nullptr) return nullptr;
      value = found;
    } else {
      return nullptr;
    }
  }
  return nullptr;
}

}  // namespace msprobe
