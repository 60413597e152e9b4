// What the hooks of this process share: whether they record, for which step, and the objects of PyTorch they need.
#pragma once

#include <exception>
#include <map>
#include <new>
#include <string>

#include "bindings/dlpack_abi.h"
#include "bindings/py.h"
#include "capture/op_filter.h"
#include "capture/recorder.h"
#include "capture/slice_rules.h"
#include "capture/tensor_files.h"
#include "capture/trigger.h"

namespace msprobe {

struct CaptureOptions {
  bool apis = false, modules = false;  // levels L1, L0; mix has both
  bool structure = false;              // names, stacks and parents only
  bool checksums = false;              // summary_mode md5
  bool xor_digests = false;            // summary_mode xor: instead of statistics
  bool extra_info = true;
  bool forward = true, backward = true, input = true, output = true;  // data_mode
};

class InTool;

/// Per thread: how deep it is inside recorded APIs, and whether it runs our own code.
struct ThreadFlags {
  int api_depth = 0;
  bool in_tool = false;
  bool finishing = false;  // stop() or step(): what waits is written though nothing runs any more
  InTool* tool = nullptr;
  uint64_t number = 0;  // of the thread; 0: not asked yet
};
extern thread_local ThreadFlags t_flags;
/// Numbers threads in the order in which they are met.
uint64_t ThreadNumber();

struct Runtime {
  bool running = false;     // between start() and stop()
  bool step_open = false;   // until step(): the backward of APIs is recorded after stop(), too
  uint64_t generation = 1;  // of the step; counters and hooks of an older one are stale
  int threads_in_tool = 0;
  CaptureOptions options;
  OpFilter filter;
  Trigger trigger;  // tasks that decide after an op ran whether it is kept
  std::vector<SliceRule> slices;
  Recorder* recorder = nullptr;
  TensorFiles* files = nullptr;  // open while a step saves tensors

  PyTypeObject *tensor = nullptr, *parameter = nullptr;
  PyTypeObject* user_dict = nullptr;  // collections.UserDict
  PyTypeObject* work = nullptr;       // torch.distributed.Work
  PyObject* open_blocks = nullptr;    // dict of torch.distributed: the blocks of communications that have not ended
  PyTypeObject *torch_size = nullptr, *torch_dtype = nullptr, *torch_device = nullptr;
  const DlpackExchangeApi* dlpack = nullptr;
  PyObject *is_grad_enabled = nullptr, *tracing_state = nullptr, *mode_depth = nullptr, *disable_modes = nullptr;
  PyObject *next_sequence = nullptr, *current_node = nullptr;  // of autograd; null in older releases
  PyObject *current_pass = nullptr, *at_end_of_pass = nullptr;
  PyObject* compiler = nullptr;              // dict of torch.compiler
  PyObject* module_directory = nullptr;      // where the framework's own modules are written
  PyObject* global_forward_hooks = nullptr;  // dict, of all modules
  PyObject *dispatch_depth = nullptr, *dispatch_mode = nullptr, *functional_key = nullptr, *proxy_key = nullptr;
  PyObject* any_leaf = nullptr;         // an empty tensor that requires grad
  PyObject* describe = nullptr;         // Python: value, key -> JSON text
  PyObject* describe_tensor = nullptr;  // Python: tensor -> what values.h calls a description
  PyObject* defer_tensor = nullptr;     // Python: starts the reductions of a tensor on its device (deferred.h)
  PyObject* fetch_deferred = nullptr;   // Python: waits for all of them
  bool defer_all = false;               // of tensors in host memory, too: for tests
  PyObject* get_line = nullptr;         // linecache.getline
  std::string own_directory;            // frames of files below it are left out of call stacks

  // "captured N ops; skipped K because ..."
  uint64_t recorded = 0;
  std::map<std::string, uint64_t> skipped;
  std::map<std::string, std::string> skip_examples;
  uint64_t without_memory = 0;  // for lack of memory; a number needs none

  bool Grad() const;  // torch.is_grad_enabled()
  /// torch.compile, export or make_fx look at the code: the tensors are none, and what is seen here never runs again.
  bool Compiling() const;
};
Runtime& rt();

/// Counts something that could not be recorded; the first text of a kind goes to the error log.
void NoteSkip(const std::string& kind, const std::string& text);

/// Counts that memory was missing for something that should have been recorded.
void NoteNoMemory() noexcept;
/// Puts that into `skipped`.
void CountNoMemory();
/// Counts what a fault of ours kept from being recorded.
void NoteFault(const char* what) noexcept;
/// The same for the raised Python error, which is cleared.
void NotePythonError() noexcept;

/// The edge to the training: runs our code where nothing of it may go on, through the C frames of the interpreter, into
/// the user's call: no exception, and no Python error but one that was raised before. False when it did not come to its
/// end: what was recorded half is dropped by the recorder.
template <typename Run>
bool Shielded(Run run) noexcept {
  const bool raised = PyErr_Occurred() != nullptr;
  bool done = false;
  try {
    run();
    done = true;
  } catch (const std::bad_alloc&) {
    NoteNoMemory();
  } catch (const std::exception& e) {
    NoteFault(e.what());
  }
  if (!raised && PyErr_Occurred() != nullptr) NotePythonError();
  return done;
}

/// Of a file that could not be written for lack of memory; short enough to need none.
Status NoMemory() noexcept;

/// Returns when no other thread is in our own code. Whoever is there may hold records though it gave the GIL away.
void WaitForOtherThreads();

/// While it lives this thread's calls of hooked functions are ours: nothing is recorded, user modes do not see them.
class InTool {
 public:
  InTool();
  ~InTool();
  InTool(const InTool&) = delete;
  InTool& operator=(const InTool&) = delete;
  /// Turns off __torch_function__ of modes and subclasses; called when a subclass of Tensor is met.
  static void DisableOverrides();

 private:
  PyObject* guard_ = nullptr;
  InTool* outer_;
};

/// Interned attribute names.
struct Names {
  PyObject *requires_grad, *grad_fn, *grad, *register_hook, *register_prehook, *view_as, *data_ptr, *dtype, *shape,
      *stride, *is_neg, *is_conj, *is_cpu, *is_meta, *untyped_storage, *nbytes, *next_functions, *expand_as, *output_nr,
      *code, *inplace, *parameters, *enter, *exit, *fields, *dataclass_fields, *data, *base, *variable, *numel,
      *is_full_backward_hook, *backward_hooks, *detach, *clone, *p, *signature, *sequence_nr, *is_compiling_flag,
      *version, *forward, *co_filename, *dict, *forward_pre_hooks, *modules, *hooks_dict_ref, *remove;
};
extern Names names;
void InitNames();

}  // namespace msprobe
