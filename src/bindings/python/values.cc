#include "bindings/python/values.h"

#include <algorithm>
#include <vector>

#include "bindings/python/framework.h"
#include "bindings/python/runtime.h"
#include "bindings/python/tensor_record.h"

namespace msprobe {
namespace {

constexpr int kMaxDepth = 399;         // readers of the earlier tool go 400 levels deep
constexpr size_t kMaxNodes = 200'000;  // of one op: a list that holds itself must not fill the memory

// The containers around a value, to notice one that holds itself.
thread_local std::vector<PyObject*> t_around;  // NOLINT(clang-diagnostic-exit-time-destructors): owns none

class Inside {
 public:
  explicit Inside(PyObject* container) { t_around.push_back(container); }
  ~Inside() { t_around.pop_back(); }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
};

bool HoldsItself(Record* record, PyObject* container) {
  if (std::find(t_around.begin(), t_around.end(), container) == t_around.end()) return false;
  record->Typed(InternName(Py_TYPE(container)->tp_name)->c_str(), "...");
  return true;
}

void RecordUnreadable(Record* record, PyObject* value) {
  const std::string type = Py_TYPE(value)->tp_name;
  NoteSkip("a value of type " + type + " could not be read", record->name.str() + ": " + TakeError());
  record->Null();
}

// What Python says about an object: JSON text; members, as pairs of a key and JSON text or a tensor; or a list or dict
// to record in its place.
void RecordByPython(Record* record, PyObject* value, PyObject* key, int depth) {
  ++t_flags.hook;  // it may run code of the user
  const Ref file = FileForPython(record, value);
  Ref said(interpreter().describe != nullptr
               ? PyObject_CallFunctionObjArgs(interpreter().describe, value, key != nullptr ? key : Py_None, file.get(),
                                              nullptr)
               : nullptr);
  if (said && (PyList_CheckExact(said.get()) || PyDict_CheckExact(said.get())))
    return RecordValue(record, said.get(), key, depth);
  if (said && PyTuple_CheckExact(said.get())) {
    record->BeginDict();
    for (Py_ssize_t i = 0; i + 1 < PyTuple_GET_SIZE(said.get()); i += 2) {
      PyObject* item = PyTuple_GET_ITEM(said.get(), i + 1);
      RecordKey(record, PyTuple_GET_ITEM(said.get(), i));
      PyUnicode_Check(item) ? record->Json(TextOf(item)) : RecordValue(record, item, nullptr, depth + 1);
    }
    return record->EndDict();
  }
  const std::string_view json = TextOf(said.get());
  json.empty() ? RecordUnreadable(record, value) : record->Json(json);
}

// TensorDescription of odd_values.py, the class of what Python says of a tensor that is not plain memory.
struct TensorDescription {
  Ref type, dtype, shape;  // texts, tuple of ints
  Ref requires_grad;       // bool
  Ref extra;               // text: further members as JSON without braces
  Ref plain;               // the plain tensor whose values stand for it, or None
  Ref file;                // where it was saved, or None

  // False, maybe with an error, when a member is missing or of another type.
  bool Read(PyObject* said) {
    if (said == nullptr) return false;
    for (auto [member, name] :
         {std::pair(&type, names.type), std::pair(&dtype, names.dtype), std::pair(&shape, names.shape),
          std::pair(&requires_grad, names.requires_grad), std::pair(&extra, names.extra),
          std::pair(&plain, names.plain), std::pair(&file, names.file)}) {
      *member = Ref(PyObject_GetAttr(said, name));
      if (!*member) return false;
    }
    return PyUnicode_Check(type.get()) && PyUnicode_Check(dtype.get()) && PyTuple_Check(shape.get()) &&
           PyBool_Check(requires_grad.get()) && PyUnicode_Check(extra.get());
  }
};

void RecordOddTensor(Record* record, PyObject* tensor) {
  ++t_flags.hook;  // as above, and it may wait for a communication
  const Ref file = FileForPython(record, tensor);
  if (framework().IsAwaited(tensor)) {
    if (t_flags.used_now)
      framework().Await(tensor);
    else
      NoteSkip("a tensor had not been waited for when it was recorded", record->name.str());
  }
  PyObject* describe = interpreter().describe_tensor;
  Ref said(describe != nullptr ? PyObject_CallFunctionObjArgs(describe, tensor, file.get(), nullptr) : nullptr);
  TensorDescription description;
  if (!description.Read(said.get())) return RecordUnreadable(record, tensor);
  TensorLabel label;
  label.type = InternName(TextOf(description.type.get()))->c_str();
  label.dtype = InternName(TextOf(description.dtype.get()))->c_str();
  label.shape = description.shape.get();
  label.requires_grad = description.requires_grad.get() == Py_True;
  label.extra = TextOf(description.extra.get());
  label.file = TextOf(description.file.get());
  PyObject* plain = description.plain.get();
  if (plain == Py_None || !IsPlainTensor(plain) || !framework().RecordTensor(record, plain, &label)) {
    AppendTensor(record, {}, nullptr, 0, &label);
  }
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
  if (HoldsItself(record, list)) return;
  const Inside inside(list);
  record->BeginList();
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(list); ++i) {
    // Held: describing an item may run code of the user that changes the list.
    Ref item = Ref::Borrow(PySequence_Fast_GET_ITEM(list, i));
    RecordValue(record, item.get(), nullptr, depth + 1);
  }
  record->EndList();
}

using Pairs = std::vector<std::pair<Ref, Ref>>;

// Read from where they are kept: methods of the user's class are not called. Only an OrderedDict keeps an order of its
// own.
Pairs ItemsOf(PyObject* dict) {
  Pairs pairs;
  if (PyODict_Check(dict)) {
    Ref method(PyObject_GetAttrString(reinterpret_cast<PyObject*>(&PyODict_Type), "items"));
    Ref view(method ? PyObject_CallOneArg(method.get(), dict) : nullptr);
    Ref list(view ? PySequence_List(view.get()) : nullptr);
    for (Py_ssize_t i = 0; list && i < PyList_GET_SIZE(list.get()); ++i) {
      PyObject* pair = PyList_GET_ITEM(list.get(), i);
      pairs.emplace_back(Ref::Borrow(PyTuple_GET_ITEM(pair, 0)), Ref::Borrow(PyTuple_GET_ITEM(pair, 1)));
    }
    if (list) return pairs;
    PyErr_Clear();
  }
  PyObject *key, *value;
  Py_ssize_t position = 0;
  while (PyDict_Next(dict, &position, &key, &value)) pairs.emplace_back(Ref::Borrow(key), Ref::Borrow(value));
  return pairs;
}

void RecordDict(Record* record, PyObject* dict, int depth) {
  if (HoldsItself(record, dict)) return;
  const Inside inside(dict);
  record->BeginDict();
  size_t index = 0;
  for (const auto& [key, value] : ItemsOf(dict)) {
    RecordKey(record, key.get(), index++);
    RecordValue(record, value.get(), key.get(), depth + 1);
  }
  record->EndDict();
}

// Named tuples and data classes: an object of their fields.
void RecordFields(Record* record, PyObject* value, PyObject* fields, int depth) {
  if (HoldsItself(record, value)) return;
  const Inside inside(value);
  Ref list(PySequence_List(fields));
  if (!list) {
    PyErr_Clear();
    return record->Null();
  }
  record->BeginDict();
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list.get()); ++i) {
    PyObject* name = PyList_GET_ITEM(list.get(), i);
    Ref field(PyObject_GetAttr(value, name));
    ++t_flags.hook;  // a property is code of the user
    if (!field) PyErr_Clear();
    RecordKey(record, name);
    RecordValue(record, field ? field.get() : Py_None, name, depth + 1);
  }
  record->EndDict();
}

// Whether the text of a key is made without code of the user. That of a tensor would also wait for its device.
bool SaysItself(PyObject* key, int depth = 0) {
  const PyTypeObject* type = Py_TYPE(key);
  if (type == &PyTuple_Type) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); ++i) {
      if (depth > 4 || !SaysItself(PyTuple_GET_ITEM(key, i), depth + 1)) return false;
    }
    return true;
  }
  const FrameworkTypes& types = framework().types();
  for (const PyTypeObject* known : {&PyLong_Type, &PyFloat_Type, &PyUnicode_Type, &PyBool_Type, &PyBytes_Type,
                                    &PyComplex_Type, types.dtype, types.device}) {
    if (type == known) return true;
  }
  return key == Py_None;
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
  const FrameworkTypes& types = framework().types();
  PyTypeObject* type = Py_TYPE(value);
  if (type == types.dtype) return RecordTypedText(record, types.dtype_name, value);
  if (type == types.device) return RecordTypedText(record, types.device_name, value);
  if (type == types.size) return RecordByPython(record, value, key, depth);
  for (PyObject* name : {PyTuple_Check(value) ? names.fields : nullptr, names.dataclass_fields}) {
    if (name == nullptr) continue;
    Ref fields(PyObject_GetAttr(reinterpret_cast<PyObject*>(type), name));
    if (fields) return RecordFields(record, value, fields.get(), depth);
    PyErr_Clear();
  }
  if (PyTuple_Check(value) || PyList_Check(value)) return RecordList(record, value, depth);
  if (PyDict_Check(value)) return RecordDict(record, value, depth);
  PyTypeObject* user_dict = interpreter().user_dict;
  if (user_dict != nullptr && PyType_IsSubtype(type, user_dict)) {
    Ref data(PyObject_GetAttrString(value, "data"));
    if (data && PyDict_Check(data.get())) return RecordDict(record, data.get(), depth);
    PyErr_Clear();
  }
  RecordByPython(record, value, key, depth);
}

thread_local const StandIns* shown_as = nullptr;

PyObject* ShownFor(PyObject* tensor) {
  for (const auto& [original, copy] : *shown_as) {
    if (original.get() == tensor) return copy.get();
  }
  return tensor;
}

}  // namespace

ShownAs::ShownAs(const StandIns& stand_ins) { shown_as = stand_ins.empty() ? nullptr : &stand_ins; }
ShownAs::~ShownAs() { shown_as = nullptr; }

void RecordKey(Record* record, PyObject* key, size_t index) {
  Py_ssize_t size = 0;
  const char* text = PyUnicode_Check(key) ? PyUnicode_AsUTF8AndSize(key, &size) : nullptr;
  if (text != nullptr) return record->Key({text, static_cast<size_t>(size)});
  PyErr_Clear();
  // As json.dumps turns keys into text.
  if (key == Py_None) return record->Key("null");
  if (PyBool_Check(key)) return record->Key(key == Py_True ? "true" : "false");
  if (!SaysItself(key)) return record->Key(std::string(Py_TYPE(key)->tp_name) + "#" + std::to_string(index));
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
    if (shown_as != nullptr) value = ShownFor(value);
    if (!framework().RecordTensor(record, value, nullptr)) RecordOddTensor(record, value);
    return;
  }
  if (IsTensor(value)) return RecordOddTensor(record, value);
  const bool special_key = KeyIs(key, "device") || KeyIs(key, "dtype") || KeyIs(key, "output_dtype");
  if (special_key && (PyUnicode_Check(value) || PyLong_Check(value))) return RecordByPython(record, value, key, depth);
  if (RecordScalar(record, value)) return;
  if (PyTuple_CheckExact(value) || PyList_CheckExact(value)) return RecordList(record, value, depth);
  if (PyDict_CheckExact(value)) return RecordDict(record, value, depth);
  RecordOther(record, value, key, depth);
}

void RecordAsList(Record* record, PyObject* value) {
  // A named tuple is an object of its fields here, too.
  if (PyTuple_Check(value) && !PyTuple_CheckExact(value) &&
      PyObject_HasAttr(reinterpret_cast<PyObject*>(Py_TYPE(value)), names.fields)) {
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
