// The objects of MindSpore that hooks ask, and the names of its attributes. Borrowed, for as long as the process lives.
#pragma once

#include "bindings/python/py.h"

namespace msprobe {

struct MindSporeObjects {
  PyObject* requires_grad = nullptr;   // () -> what is called now gets a backward
  PyObject* at_end_of_pass = nullptr;  // (callable), within a backward pass; null: this release has none
  bool has_nodes = false;              // a tensor tells its node of the backward pass; else no backward is recorded
  bool tells_raised = false;           // hooks of a Cell may run where its construct raised, too: since 2.10

  bool Grad() const;
};
MindSporeObjects& mindspore_objects();

/// Interned attribute names.
struct MindSporeNames {
  PyObject *requires_grad, *grad_node, *output_index, *register_hook, *data_ptr, *dtype, *shape, *stride, *device,
      *asnumpy, *array_interface, *params, *remove;
};
extern MindSporeNames mindspore_names;

/// Finds them in the module mindspore. Throws std::runtime_error with what this release lacks.
void InitMindSporeObjects(PyObject* mindspore);

}  // namespace msprobe
