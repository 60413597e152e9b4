#include "bindings/python/py.h"

namespace msprobe {

std::string TakeError() {
  PyObject *type, *value, *trace;
  // Ctrl-C while our code ran is the script's: it comes again when we are done.
  if (PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) PyErr_SetInterrupt();
  PyErr_Fetch(&type, &value, &trace);
  if (type == nullptr) return "unknown error";
  const Ref held_type(type), held(value), held_trace(trace);
  std::string text = reinterpret_cast<PyTypeObject*>(type)->tp_name;
  if (value != nullptr) {
    Ref str(PyObject_Str(value));
    const char* utf8 = str ? PyUnicode_AsUTF8(str.get()) : nullptr;
    if (utf8 != nullptr) text.append(": ").append(utf8);
    PyErr_Clear();
  }
  return text;
}

bool AttrIsTrue(PyObject* o, PyObject* name) {
  Ref value(PyObject_GetAttr(o, name));
  if (!value) PyErr_Clear();
  return value.get() == Py_True;
}

int64_t AttrAsInteger(PyObject* o, PyObject* name) {
  Ref value(PyObject_GetAttr(o, name));
  const int64_t number = value ? PyLong_AsLongLong(value.get()) : -1;
  if (PyErr_Occurred()) PyErr_Clear();
  return number;
}

PyObject* Attribute(PyObject* owner, const std::string& path) {
  Ref o = Ref::Borrow(owner);
  for (size_t at = 0; o && at != std::string::npos;) {
    const size_t dot = path.find('.', at);
    o = Ref(PyObject_GetAttrString(o.get(), path.substr(at, dot == std::string::npos ? dot : dot - at).c_str()));
    at = dot == std::string::npos ? dot : dot + 1;
  }
  if (!o) PyErr_Clear();
  return o.release();
}

std::string_view TextOf(PyObject* text) {
  Py_ssize_t size = 0;
  const char* utf8 = text != nullptr && PyUnicode_Check(text) ? PyUnicode_AsUTF8AndSize(text, &size) : nullptr;
  return utf8 != nullptr ? std::string_view(utf8, static_cast<size_t>(size)) : std::string_view();
}

bool IntegersOf(PyObject* tuple, size_t most, int64_t* out, int* count) {
  if (!PyTuple_Check(tuple) || static_cast<size_t>(PyTuple_GET_SIZE(tuple)) > most) return false;
  *count = static_cast<int>(PyTuple_GET_SIZE(tuple));
  for (int i = 0; i < *count; ++i) {
    out[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(tuple, i));
    if (out[i] == -1 && PyErr_Occurred()) return false;
  }
  return true;
}

}  // namespace msprobe
