// Callables in C that a framework calls: before and after its modules, and at the nodes of its backward pass.
#pragma once

#include <memory>

#include "bindings/python/py.h"

namespace msprobe {

// Inside a region that is compiled, the compiler looks at every function of Python that runs, and compiles it. Not at
// ours.
/// While it lives, functions that this thread runs are left alone.
class CompilerAside {
 public:
  CompilerAside();
  ~CompilerAside();
  CompilerAside(const CompilerAside&) = delete;
  CompilerAside& operator=(const CompilerAside&) = delete;

  /// set_eval_frame() of torch.compile, which says what looks at functions.
  static void Use(PyObject* set_eval_frame);

 private:
  Ref prior_;
};

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

/// The same for a function of Python that lets no fault of its own through (_capture/guard.py): a compiler does not
/// look into it, and copies do nothing.
PyObject* NewCallback(PyObject* function);

bool InitHookType();
/// Their type. Borrowed.
PyObject* HookType();

}  // namespace msprobe
