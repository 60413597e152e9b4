#include "bindings/mindspore/mindspore_objects.h"

#include <stdexcept>

#include "bindings/backward/graph_walk.h"

namespace msprobe {
namespace {

void InitNames() {
  if (mindspore_names.grad_node != nullptr) return;
  const auto intern = [](const char* text) { return PyUnicode_InternFromString(text); };
  mindspore_names = {.requires_grad = intern("_requires_grad"),
                     .grad_node = intern("_grad_node"),
                     .output_index = intern("_output_index"),
                     .register_hook = intern("register_hook"),
                     .data_ptr = intern("data_ptr"),
                     .dtype = intern("dtype"),
                     .shape = intern("shape"),
                     .stride = intern("stride"),
                     .device = intern("device"),
                     .asnumpy = intern("asnumpy"),
                     .array_interface = intern("__array_interface__"),
                     .params = intern("_params"),
                     .remove = intern("remove")};
  node_names = {.next_functions = intern("next_functions"),
                .sequence_nr = intern("_sequence_nr"),
                .unique_id = intern("_unique_id"),
                .name = intern("name"),
                .variable = nullptr};
}

}  // namespace

MindSporeNames mindspore_names;

MindSporeObjects& mindspore_objects() {
  static auto* objects = new MindSporeObjects;  // never destroyed: hooks may fire while the interpreter shuts down
  return *objects;
}

bool MindSporeObjects::Grad() const {
  Ref on(PyObject_CallNoArgs(requires_grad));
  if (!on) PyErr_Clear();
  return on.get() == Py_True;
}

void InitMindSporeObjects(PyObject* mindspore) {
  InitNames();
  MindSporeObjects& o = mindspore_objects();
  const std::string executor = "common.api._pynative_executor.";
  o.requires_grad = Attribute(mindspore, executor + "requires_grad");
  o.at_end_of_pass = Attribute(mindspore, executor + "queue_backward_final_callback");
  Ref tensor(PyObject_GetAttrString(mindspore, "Tensor"));
  o.has_nodes = tensor && PyObject_HasAttr(tensor.get(), mindspore_names.grad_node) == 1 &&
                PyObject_HasAttr(tensor.get(), mindspore_names.output_index) == 1 && o.at_end_of_pass != nullptr;
  Ref cell(Ref::Borrow(Attribute(mindspore, "nn.Cell")));
  o.tells_raised = cell && PyObject_HasAttrString(cell.get(), "_forward_hook_always_called") == 1;
  if (o.requires_grad == nullptr) {
    throw std::runtime_error("this release of MindSpore lacks requires_grad() of its executor of PyNative mode");
  }
}

}  // namespace msprobe
