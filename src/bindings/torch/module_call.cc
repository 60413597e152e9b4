#include "bindings/torch/module_call.h"

#include "bindings/python/runtime.h"
#include "bindings/torch/nested_tensors.h"
#include "bindings/torch/torch_objects.h"

namespace msprobe {
namespace {

PyObject* is_used_later = nullptr;

// The compiler would look at the function, too.
bool MayBeUsedLater(PyObject* tensor) {
  if (is_used_later == nullptr || t_flags.compiled) return true;
  Ref answer(PyObject_CallOneArg(is_used_later, tensor));
  if (!answer) NoteSkip("the code around a module could not be read", TakeError());
  return answer.get() != Py_False;
}

}  // namespace

std::vector<OpenCall>& OpenCalls() { return PerThread<std::vector<OpenCall>>(); }

const std::string* BufferName(const char* data) {
  const std::vector<OpenCall>& calls = OpenCalls();
  if (calls.empty() || data == nullptr) return nullptr;
  for (const ModuleBuffer& buffer : calls.back().buffers) {
    if (buffer.data == data) return &buffer.name;
  }
  return nullptr;
}

void SetInputs(OpenCall* call, PyObject* args) {
  std::vector<PyObject*> tensors;
  if (!torch_objects().Grad()) return;
  CollectGradTensors(args, &tensors);
  call->backward = std::make_shared<ModuleBackward>(
      OpName{call->site->base, call->name.index, NameForm::kModuleBackward}, call->site->counts);
  call->backward->SetInputs(tensors);
}

void SetOutputs(OpenCall* call, PyObject* output) {
  std::vector<PyObject*> tensors;
  CollectGradTensors(output, &tensors);
  if (tensors.empty() || !torch_objects().Grad()) return;
  call->backward->SetOutputs(tensors);
  PyObject* returned = call->backward->ReturnedAsItWas(tensors);
  if (returned != nullptr && MayBeUsedLater(returned)) call->backward->SetUsedPast();
}

void SetUsedLater(PyObject* function) {
  Py_INCREF(function);
  Py_XSETREF(is_used_later, function);
}

}  // namespace msprobe
