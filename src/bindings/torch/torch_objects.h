// The objects of PyTorch that hooks ask, and the names of its attributes. Borrowed, for as long as the process lives.
#pragma once

#include "bindings/python/dlpack_abi.h"
#include "bindings/python/py.h"

namespace msprobe {

/// Null: this release has none.
struct TorchObjects {
  const DlpackExchangeApi* dlpack = nullptr;
  PyObject *is_grad_enabled = nullptr, *tracing_state = nullptr, *mode_depth = nullptr, *disable_modes = nullptr;
  PyObject *next_sequence = nullptr, *current_node = nullptr;  // of autograd; null in older releases
  PyObject *current_pass = nullptr, *at_end_of_pass = nullptr;
  PyObject* compiler = nullptr;              // dict of torch.compiler
  PyObject* module_directory = nullptr;      // where the framework's own modules are written
  PyObject* global_forward_hooks = nullptr;  // dict, of all modules
  PyObject *dispatch_depth = nullptr, *dispatch_mode = nullptr, *functional_key = nullptr, *proxy_key = nullptr;
  PyObject* any_leaf = nullptr;  // an empty tensor that requires grad; only where there is no next_sequence

  bool Grad() const;  // torch.is_grad_enabled()
};
TorchObjects& torch_objects();

/// Interned attribute names.
struct TorchNames {
  PyObject *requires_grad, *grad_fn, *grad, *register_hook, *register_prehook, *view_as, *data_ptr, *dtype, *shape,
      *stride, *is_neg, *is_conj, *is_cpu, *is_meta, *untyped_storage, *nbytes, *next_functions, *expand_as, *output_nr,
      *inplace, *buffers, *parameters, *is_full_backward_hook, *backward_hooks, *detach, *clone, *is_compiling_flag,
      *version, *forward, *co_filename, *dict, *forward_pre_hooks, *forward_hooks, *modules, *remove,
      *post_accumulate_grad_hooks;
};
extern TorchNames torch_names;

/// Finds them in the module torch. Throws std::runtime_error with what this release lacks.
void InitTorchObjects(PyObject* torch);

}  // namespace msprobe
