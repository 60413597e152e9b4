#include "bindings/mindspore/mindspore_framework.h"

#include <memory>
#include <stdexcept>
#include <utility>

#include "bindings/backward/param_grads.h"
#include "bindings/mindspore/call_backward.h"
#include "bindings/mindspore/cells.h"
#include "bindings/mindspore/mindspore_objects.h"
#include "bindings/mindspore/primitives.h"
#include "bindings/mindspore/tensors.h"
#include "bindings/python/api_site.h"
#include "bindings/python/api_values.h"
#include "bindings/python/framework.h"
#include "bindings/python/hook_object.h"

namespace msprobe {
namespace {

PyTypeObject* TypeAt(PyObject* mindspore, const char* path) {
  return reinterpret_cast<PyTypeObject*>(Attribute(mindspore, path));
}

class MindSporeFramework final : public CaptureFramework {
 public:
  void FindTypes(PyObject* mindspore) {
    types_.tensor = TypeAt(mindspore, "Tensor");
    types_.parameter = TypeAt(mindspore, "Parameter");
    types_.module = TypeAt(mindspore, "nn.Cell");
    types_.plain_subclasses = true;  // the class of a parameter is made for it
    names_ = {
        .framework = "mindspore", .tensor_type = "mindspore.Tensor", .dtype_prefix = "", .tells_requires_grad = false};
  }

  bool RecordTensor(Record* record, PyObject* tensor, const TensorLabel* label) override {
    return RecordMindSporeTensor(record, tensor, label);
  }
  void SaveHeld(Record* record, const HeldValue& value, const std::string& name) override {
    SaveHeldTensor(record, value, name);
  }
  bool LookAt(PyObject* tensor, TensorLook* look) override { return LookAtMindSporeTensor(tensor, look); }
  const char* file_ending() const override { return ".npy"; }
  Ref CopyOf(PyObject* tensor) override {
    Ref copy(PyObject_CallMethod(tensor, "copy", nullptr));
    PyErr_Clear();
    return copy;
  }

  void BeforeApi() override {
    if (!mindspore_objects().tells_raised) DropLeftCells();
  }
  void BeforeWrite(PyObject* first) override { ReadBeforeWrite(first); }
  std::shared_ptr<void> PrepareApiBackward(const CallArgs& args) override {
    if (!mindspore_objects().has_nodes || !mindspore_objects().Grad()) return nullptr;
    return std::make_shared<CallBackward>(PositionalArguments(args));
  }
  void HookApiBackward(std::shared_ptr<void> prepared, PyObject* output, const OpName& name, Risk risk) override {
    if (prepared == nullptr) return;
    static_cast<CallBackward*>(prepared.get())->Hook(output, name, risk, BackwardOfCell(), IsPrimitiveName(*name.base));
    if (OutsideCells()) GraphWalk::OfThread().Forget();
  }

  void ForgetRegions() override { ReadLaterAgain(); }
  void InstallModuleHooks() override { InstallCellHooks(); }
  void RemoveModuleHooks() override { RemoveCellHooks(); }
  void FinishBackward() override {
    FinishOpenBackwards();
    ReadTensors();
  }
  void FinishParameterGradients() override {
    const GradientsLater later;
    FinishParamGrads();
  }
};

}  // namespace

bool InitMindSpore(PyObject* mindspore) {
  if (!InitHookType()) return false;
  InitMindSporeObjects(mindspore);
  static auto* made = new MindSporeFramework;  // for as long as the process lives
  made->FindTypes(mindspore);
  if (made->types().tensor == nullptr || made->types().parameter == nullptr) {
    throw std::runtime_error("this release of MindSpore lacks Tensor or Parameter");
  }
  SetFramework(made);
  return true;
}

void HideFromGraphCompiler(bool hide) {
  HideApis(hide ? HiddenApis::kAll : HiddenApis::kNone);
  HideCellHooks(hide);
}

}  // namespace msprobe
