// Callables in C that a framework calls: before and after its modules, and at the nodes of its backward pass.
#pragma once

#include <memory>

#include "bindings/python/py.h"

namespace msprobe {

class Hook {
 public:
  Hook() = default;
  Hook(const Hook&) = delete;
  Hook& operator=(const Hook&) = delete;
  virtual ~Hook() = default;

  /// With the arguments of the framework. A new reference, never null: no exception of ours goes into the training.
  virtual PyObject* Call(PyObject* const* args, Py_ssize_t count) = 0;
};

/// The object that calls `hook`: a new reference, or null with an error. What is made of it by deepcopy or pickle does
/// nothing: the calls of a copy of a hooked model are not those of the model.
PyObject* NewHookObject(std::unique_ptr<Hook> hook);
/// Null: not an object of NewHookObject(), or a copy.
Hook* HookIn(PyObject* object);

bool InitHookType();
/// Their type. Borrowed.
PyObject* HookType();

}  // namespace msprobe
