#include "bindings/torch/torch_framework.h"

#include <stdexcept>

#include "bindings/backward/param_grads.h"
#include "bindings/python/framework.h"
#include "bindings/python/hook_object.h"
#include "bindings/torch/api_backward.h"
#include "bindings/torch/module_backward.h"
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
    types_.open_blocks = Attribute(torch, "distributed.distributed_c10d._world.pg_coalesce_state");
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
  Ref CopyOf(PyObject* tensor) override {
    Ref detached(PyObject_CallMethodNoArgs(tensor, torch_names.detach));
    Ref copy(detached ? PyObject_CallMethodNoArgs(detached.get(), torch_names.clone) : nullptr);
    if (!copy) PyErr_Clear();
    return copy;
  }

  void BeforeApi() override { BackwardOrder::Get().OnForward(); }
  void HookApiBackward(std::shared_ptr<void>, PyObject* output, const OpName& name, Risk risk) override {
    msprobe::HookApiBackward(output, name, risk);
  }

  void ForgetRegions() override {
    msprobe::ForgetRegions();
    ForgetAllocations();
  }
  void InstallModuleHooks() override { msprobe::InstallModuleHooks(); }
  void RemoveModuleHooks() override { msprobe::RemoveModuleHooks(); }
  void FinishBackward() override { BackwardOrder::Get().Finish(); }
  void FinishParameterGradients() override { FinishParamGrads(); }
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
