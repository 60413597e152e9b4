#include "bindings/mindspore/cell_params.h"

#include <string>
#include <utility>

#include "bindings/backward/node_hook.h"
#include "bindings/mindspore/mindspore_objects.h"
#include "bindings/mindspore/tensors.h"
#include "bindings/python/runtime.h"

namespace msprobe {
namespace {

class GradHook final : public NodeHook {
 public:
  GradHook(ParamGradsPtr grads, size_t slot, const char* name) : grads_(std::move(grads)), slot_(slot), name_(name) {}

  void Run(PyObject* const* args, Py_ssize_t count) override {
    if (t_flags.in_tool || count < 1 || !rt().running || grads_->called != rt().generation) return;
    InTool guard;
    const GradientsLater later;
    grads_->Add(slot_, name_.c_str(), [&] { return Ref::Borrow(args[0]); });
  }

 private:
  ParamGradsPtr grads_;
  size_t slot_;
  std::string name_;
};

bool takes_functions = false;

// MindSpore 2.7 takes functions of Python only.
Ref AsFunction(PyObject* hook) {
  static PyObject* const make = [] {
    Ref globals(PyDict_New());
    return globals ? PyRun_String("lambda hook: lambda gradient: hook(gradient)", Py_eval_input, globals.get(),
                                  globals.get())
                   : nullptr;
  }();
  return Ref(make != nullptr ? PyObject_CallOneArg(make, hook) : nullptr);
}

Ref RegisterHook(PyObject* parameter, PyObject* hook) {
  Ref handle(PyObject_CallMethodOneArg(parameter, mindspore_names.register_hook, hook));
  if (handle || !(PyErr_ExceptionMatches(PyExc_TypeError) || PyErr_ExceptionMatches(PyExc_AttributeError)))
    return handle;
  PyErr_Clear();
  Ref function(AsFunction(hook));
  takes_functions = static_cast<bool>(function);
  return Ref(function ? PyObject_CallMethodOneArg(parameter, mindspore_names.register_hook, function.get()) : nullptr);
}

}  // namespace

bool ParamHooksAreCompiled() { return takes_functions; }

void CellParams::Hook(PyObject* cell) {
  LetGo();
  static PyObject* const requires_grad = PyUnicode_InternFromString("requires_grad");
  Ref params(PyObject_GetAttr(cell, mindspore_names.params));
  if (!params || !PyDict_Check(params.get())) return PyErr_Clear();
  PyObject *key, *parameter;
  Py_ssize_t position = 0;
  grads->expected = 0;
  while (PyDict_Next(params.get(), &position, &key, &parameter)) {
    const char* name = PyUnicode_Check(key) ? PyUnicode_AsUTF8(key) : nullptr;
    if (name == nullptr || parameter == Py_None || !AttrIsTrue(parameter, requires_grad)) continue;
    Ref hook(NewHookObject(std::make_unique<GradHook>(grads, handles_.size(), name)));
    Ref handle(hook ? RegisterHook(parameter, hook.get()) : Ref());
    if (!handle) {
      NoteSkip("the gradient of a parameter could not be hooked", std::string(name) + ": " + TakeError());
      continue;
    }
    handles_.push_back(std::move(handle));
    ++grads->expected;
  }
  if (grads->expected > 0) ListParamGrads(grads);
}

void CellParams::LetGo() {
  for (const Ref& handle : std::exchange(handles_, {})) {
    Ref removed(PyObject_CallMethodNoArgs(handle.get(), mindspore_names.remove));
    if (!removed) PyErr_Clear();
  }
}

}  // namespace msprobe
