#include "bindings/torch/torch_framework.h"

#include <stdexcept>

#include "bindings/backward/param_grads.h"
#include "bindings/python/framework.h"
#include "bindings/python/hook_object.h"
#include "bindings/python/runtime.h"
#include "bindings/torch/api_backward.h"
#include "bindings/torch/backward_order.h"
#include "bindings/torch/late_outputs.h"
#include "bindings/torch/modules.h"
#include "bindings/torch/regions.h"
#include "bindings/torch/tensors.h"
#include "bindings/torch/torch_objects.h"
#include "bindings/torch/unwritten.h"

namespace msprobe {
namespace {

PyTypeObject* TypeAt(PyObject* torch, const char* path) {
  return reinterpret_cast<PyTypeObject*>(Attribute(torch, path));
}

// The tensor that a functional collective fills: itself, or the part of a DTensor.
Ref AsyncPart(PyObject* tensor) {
  static PyObject* const local = PyUnicode_InternFromString("_local_tensor");
  const auto is = [](PyObject* o, std::string_view type) { return Py_TYPE(o)->tp_name == type; };
  Ref part = Ref::Borrow(tensor);
  if (is(tensor, "DTensor")) part = Ref(PyObject_GetAttr(tensor, local));
  if (!part) PyErr_Clear();
  return part && is(part.get(), "AsyncCollectiveTensor") ? part : Ref();
}

class TorchFramework final : public CaptureFramework {
 public:
  void FindTypes(PyObject* torch) {
    types_.tensor = TypeAt(torch, "Tensor");
    types_.parameter = TypeAt(torch, "nn.Parameter");
    types_.size = TypeAt(torch, "Size");
    types_.dtype = TypeAt(torch, "dtype");
    types_.dtype_name = "torch.dtype";
    types_.device = TypeAt(torch, "device");
    types_.device_name = "torch.device";
    types_.work = TypeAt(torch, "_C._distributed_c10d.Work");
    types_.process_group = TypeAt(torch, "_C._distributed_c10d.ProcessGroup");
    names_ = {.framework = "pytorch", .tensor_type = "torch.Tensor", .dtype_prefix = "torch."};
  }

  // torch.compile, export or make_fx.
  bool Compiling() const override {
    const TorchObjects& o = torch_objects();
    if (o.compiler != nullptr && PyDict_GetItem(o.compiler, torch_names.is_compiling_flag) == Py_True) return true;
    if (o.dispatch_depth == nullptr) return false;
    Ref depth(PyObject_CallNoArgs(o.dispatch_depth));
    bool found = false;
    if (depth && PyLong_AsLong(depth.get()) > 0) {
      for (PyObject* key : {o.functional_key, o.proxy_key}) {
        Ref mode(PyObject_CallOneArg(o.dispatch_mode, key));
        found |= mode && mode.get() != Py_None;
      }
    }
    PyErr_Clear();
    return found;
  }

  // __torch_function__
  bool OverridesActive() const override {
    const TorchObjects& o = torch_objects();
    if (o.mode_depth == nullptr) return false;
    Ref depth(PyObject_CallNoArgs(o.mode_depth));
    if (!depth) PyErr_Clear();
    return depth && PyLong_AsLong(depth.get()) != 0;
  }
  PyObject* NewOverrideGuard() const override {
    PyObject* disable = torch_objects().disable_modes;
    return disable != nullptr ? PyObject_CallNoArgs(disable) : nullptr;
  }

  bool RecordTensor(Record* record, PyObject* tensor, const TensorLabel* label) override {
    return RecordPlainTensor(record, tensor, label);
  }
  void SaveHeld(Record* record, const HeldValue& value, const std::string& name) override {
    SaveHeldTensor(record, value, name);
  }
  bool LookAt(PyObject* tensor, TensorLook* look) override { return LookAtHostTensor(tensor, look); }
  bool IsAwaited(PyObject* tensor) const override {
    const Ref async(AsyncPart(tensor));
    static PyObject* const completed = PyUnicode_InternFromString("completed");
    return async && !AttrIsTrue(async.get(), completed);
  }
  void Await(PyObject* tensor) override {
    const Ref async(AsyncPart(tensor));
    Ref waited(async ? PyObject_CallMethod(async.get(), "trigger_wait", nullptr) : nullptr);
    if (!waited && PyErr_Occurred() != nullptr) NoteSkip("a communication could not be waited for", TakeError());
  }
  void NoteWritten(PyObject* tensor) override { NoteTensorWritten(tensor); }
  bool MemoryOf(PyObject* tensor, TensorMemory* memory) override {
    Ref storage(PyObject_CallMethodNoArgs(tensor, torch_names.untyped_storage));
    Ref start(storage ? PyObject_CallMethodNoArgs(storage.get(), torch_names.data_ptr) : nullptr);
    memory->storage = start ? PyLong_AsUnsignedLongLong(start.get()) : 0;
    if (PyErr_Occurred()) PyErr_Clear();
    memory->version = AttrAsInteger(tensor, torch_names.version);
    memory->on_host = AttrIsTrue(tensor, torch_names.is_cpu);
    return start && memory->storage != 0;
  }
  Ref CopyOf(PyObject* tensor) override {
    // A gradient mostly is no part of a graph already.
    const bool in_graph = AttrIsTrue(tensor, torch_names.requires_grad);
    Ref detached = in_graph ? Ref(PyObject_CallMethodNoArgs(tensor, torch_names.detach)) : Ref::Borrow(tensor);
    Ref copy(detached ? PyObject_CallMethodNoArgs(detached.get(), torch_names.clone) : nullptr);
    if (!copy) PyErr_Clear();
    return copy;
  }

  void BeforeApi() override {
    BackwardOrder::Get().OnForward();
    RecordArrived();
  }
  void HookApiBackward(std::shared_ptr<void>, PyObject* output, const OpName& name, Risk risk) override {
    msprobe::HookApiBackward(output, name, risk);
  }

  void ForgetRegions() override {
    msprobe::ForgetRegions();
    ForgetDeadAllocations();
  }
  void InstallModuleHooks() override { msprobe::InstallModuleHooks(); }
  void RemoveModuleHooks() override { msprobe::RemoveModuleHooks(); }
  void FinishBackward() override {
    BackwardOrder::Get().Finish();
    RecordArrived();
  }
  void FinishParameterGradients() override {
    FinishParamGrads();
    if (!rt().step_open) GiveUpLateOutputs();
  }
};

}  // namespace

bool InitTorch(PyObject* torch) {
  if (!InitHookType()) return false;
  InitTorchObjects(torch);
  static auto* made = new TorchFramework;  // for as long as the process lives
  made->FindTypes(torch);
  const FrameworkTypes& types = made->types();
  if (types.tensor == nullptr || types.parameter == nullptr || torch_objects().is_grad_enabled == nullptr) {
    throw std::runtime_error("this release of PyTorch lacks torch.Tensor, nn.Parameter or is_grad_enabled");
  }
  SetFramework(made);
  return true;
}

}  // namespace msprobe
