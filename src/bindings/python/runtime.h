// What the hooks of this process share: whether they record, for which step, and what they need of Python.
#pragma once

#include <exception>
#include <map>
#include <new>
#include <string>
#include <vector>

#include "bindings/python/py.h"
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
  bool in_region = false;  // a compiler looks at each function of Python that runs
  bool read_now = false;   // what is recorded will be changed by the call
  bool used_now = false;   // what is recorded will be read by the call
  bool compiled = false;   // it runs code that a compiler has made, or looks at
  bool finishing = false;  // stop() or step(): what waits is written though nothing runs any more
  InTool* tool = nullptr;
  uint64_t number = 0;  // of the thread; 0: not asked yet
  uint64_t hook = 0;    // counts stretches of our own code, within which nothing else runs in this thread
};
extern thread_local ThreadFlags t_flags;
/// Numbers threads in the order in which they are met.
uint64_t ThreadNumber();

struct Runtime {
  bool running = false;     // between start() and stop()
  bool step_open = false;   // until step(): the backward of APIs is recorded after stop(), too
  uint64_t generation = 1;  // of the step; counters and hooks of an older one are stale
  int threads_in_tool = 0;
  int aside = 0;  // calls that are not the training; of all threads, for their backward may run on others
  CaptureOptions options;
  OpFilter filter;
  Trigger trigger;  // tasks that decide after an op ran whether it is kept
  std::vector<SliceRule> slices;
  Recorder* recorder = nullptr;
  TensorFiles* files = nullptr;  // open while a step saves tensors

  // "captured N ops; skipped K because ..."
  uint64_t recorded = 0;
  std::map<std::string, uint64_t> skipped;
  std::map<std::string, std::string> skip_examples;
  uint64_t without_memory = 0;  // for lack of memory; a number needs none
};
Runtime& rt();

/// Objects of Python that hooks of any framework use.
struct Interpreter {
  PyTypeObject* user_dict = nullptr;    // collections.UserDict
  PyObject* get_line = nullptr;         // linecache.getline
  PyObject* describe = nullptr;         // of the package: value, key, file -> JSON text (values.cc)
  PyObject* describe_tensor = nullptr;  // of the package: tensor, file -> TensorDescription (values.cc)
  PyObject* defer_tensor = nullptr;     // of the package: starts the reductions of a tensor on its device (deferred.h)
  PyObject* fetch_deferred = nullptr;   // of the package: waits for all of them
  bool defer_all = false;               // of tensors in host memory, too: for tests
  bool device_kernel = false;           // it may compute what is on CUDA devices (device/device_values.h)
  bool kernel_of_host = false;          // and what is in host memory: for tests with a driver's stand-in
  void (*launch_started)() noexcept = nullptr;  // what the kernel was given; null before the first tensor
  void (*fetch_started)() = nullptr;            // waits for it
  std::string own_directory;                    // frames of files below it are left out of call stacks
};
Interpreter& interpreter();

/// Makes the recorder of this process, and another one in each that is forked from it, where nothing is recorded.
void InitRuntime();

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
  /// Keeps modes and subclasses of the user from seeing our calls; called when a subclass of Tensor is met.
  static void DisableOverrides();

 private:
  PyObject* guard_ = nullptr;
  InTool* outer_;
};

/// Interned attribute names.
struct Names {
  PyObject *code, *signature, *enter, *exit, *fields, *dataclass_fields;
  PyObject *type, *dtype, *shape, *requires_grad, *extra, *plain, *file;  // of a TensorDescription
};
extern Names names;

}  // namespace msprobe
