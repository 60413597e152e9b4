#include "bindings/torch/torch_objects.h"

#include <string>

#include "bindings/backward/graph_walk.h"

namespace msprobe {
namespace {

void InitNames() {
  if (torch_names.requires_grad != nullptr) return;
#define MSP_NAME(x) torch_names.x = PyUnicode_InternFromString(#x)
  MSP_NAME(requires_grad), MSP_NAME(grad_fn), MSP_NAME(grad), MSP_NAME(register_hook), MSP_NAME(register_prehook);
  MSP_NAME(view_as), MSP_NAME(data_ptr), MSP_NAME(dtype), MSP_NAME(shape), MSP_NAME(stride), MSP_NAME(is_neg);
  MSP_NAME(is_conj), MSP_NAME(is_cpu), MSP_NAME(is_meta), MSP_NAME(untyped_storage), MSP_NAME(nbytes);
  MSP_NAME(next_functions), MSP_NAME(expand_as), MSP_NAME(output_nr), MSP_NAME(inplace), MSP_NAME(detach);
  MSP_NAME(clone), MSP_NAME(forward), MSP_NAME(co_filename), MSP_NAME(remove);
#undef MSP_NAME
  torch_names.version = PyUnicode_InternFromString("_version");
  torch_names.dict = PyUnicode_InternFromString("__dict__");
  torch_names.forward_pre_hooks = PyUnicode_InternFromString("_forward_pre_hooks");
  torch_names.forward_hooks = PyUnicode_InternFromString("_forward_hooks");
  torch_names.modules = PyUnicode_InternFromString("_modules");
  node_names = {.next_functions = torch_names.next_functions,
                .sequence_nr = PyUnicode_InternFromString("_sequence_nr"),
                .unique_id = nullptr,
                .name = nullptr,
                .variable = PyUnicode_InternFromString("variable")};
  torch_names.is_compiling_flag = PyUnicode_InternFromString("_is_compiling_flag");
  torch_names.buffers = PyUnicode_InternFromString("_buffers");
  torch_names.parameters = PyUnicode_InternFromString("_parameters");
  torch_names.is_full_backward_hook = PyUnicode_InternFromString("_is_full_backward_hook");
  torch_names.backward_hooks = PyUnicode_InternFromString("_backward_hooks");
  torch_names.post_accumulate_grad_hooks = PyUnicode_InternFromString("_post_accumulate_grad_hooks");
}

const DlpackExchangeApi* FindDlpack(PyObject* tensor_type) {
  for (const char* name : {"__dlpack_c_exchange_api__", "__c_dlpack_exchange_api__"}) {
    PyObject* capsule = tensor_type != nullptr ? Attribute(tensor_type, name) : nullptr;
    if (capsule == nullptr) continue;
    auto* api = static_cast<const DlpackExchangeApi*>(PyCapsule_GetPointer(capsule, "dlpack_exchange_api"));
    if (api == nullptr) PyErr_Clear();
    if (api != nullptr && api->header.version.major == 1) return api;  // the capsule stays alive
  }
  return nullptr;
}

PyObject* DirectoryOf(PyObject* file) {
  const std::string path(TextOf(file));
  return file == nullptr ? nullptr : PyUnicode_FromString(path.substr(0, path.rfind('/') + 1).c_str());
}

PyObject* NewLeaf(PyObject* torch) {
  Ref empty(PyObject_GetAttrString(torch, "empty")), arguments(Py_BuildValue("(i)", 0));
  Ref keywords(Py_BuildValue("{s:O}", "requires_grad", Py_True));
  PyObject* leaf =
      empty && arguments && keywords ? PyObject_Call(empty.get(), arguments.get(), keywords.get()) : nullptr;
  if (leaf == nullptr) PyErr_Clear();
  return leaf;
}

}  // namespace

TorchNames torch_names;

TorchObjects& torch_objects() {
  static auto* objects = new TorchObjects;  // never destroyed: hooks may fire while the interpreter shuts down
  return *objects;
}

bool TorchObjects::Grad() const {
  Ref on(PyObject_CallNoArgs(is_grad_enabled));
  if (!on) PyErr_Clear();
  return on.get() == Py_True;
}

void InitTorchObjects(PyObject* torch) {
  InitNames();
  TorchObjects& o = torch_objects();
  o.is_grad_enabled = Attribute(torch, "is_grad_enabled");
  o.tracing_state = Attribute(torch, "_C._get_tracing_state");
  o.mode_depth = Attribute(torch, "_C._len_torch_function_stack");
  o.disable_modes = Attribute(torch, "_C.DisableTorchFunction");
  if (o.disable_modes == nullptr) o.mode_depth = nullptr;
  o.next_sequence = Attribute(torch, "_C._autograd._get_sequence_nr");
  o.current_node = Attribute(torch, "_C._current_autograd_node");
  o.current_pass = Attribute(torch, "_C._current_graph_task_id");
  if (o.current_pass != nullptr)
    o.at_end_of_pass = Attribute(torch, "autograd.Variable._execution_engine.queue_callback");
  o.compiler = Attribute(torch, "compiler.__dict__");
  o.global_forward_hooks = Attribute(torch, "nn.modules.module._global_forward_hooks");
  o.module_directory = DirectoryOf(Attribute(torch, "nn.modules.module.__file__"));
  o.dispatch_mode = Attribute(torch, "_C._get_dispatch_mode");
  o.functional_key = Attribute(torch, "_C._TorchDispatchModeKey.FUNCTIONAL");
  o.proxy_key = Attribute(torch, "_C._TorchDispatchModeKey.PROXY");
  if (o.dispatch_mode != nullptr && o.functional_key != nullptr && o.proxy_key != nullptr) {
    o.dispatch_depth = Attribute(torch, "_C._len_torch_dispatch_stack");
  }
  if (o.next_sequence == nullptr) o.any_leaf = NewLeaf(torch);
  o.dlpack = FindDlpack(Attribute(torch, "Tensor"));
}

}  // namespace msprobe
