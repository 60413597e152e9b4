// What the recorder asks of a framework. The part that knows one (bindings/torch) implements this and sets it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "bindings/python/py.h"
#include "capture/framework_names.h"
#include "capture/op_filter.h"
#include "capture/op_name.h"
#include "capture/record.h"

namespace msprobe {

struct CallArgs;
struct TensorLabel;
struct TensorLook;

/// Types by which values are told apart; borrowed, they live as long as the process. Null: this release has none.
struct FrameworkTypes {
  PyTypeObject *tensor = nullptr, *parameter = nullptr;  // a plain tensor is exactly of one of them ...
  bool plain_subclasses = false;                         // ... or of any class below
  PyTypeObject* module = nullptr;                        // of models; null where nothing asks
  PyTypeObject* size = nullptr;                          // of a tensor; described in Python
  PyTypeObject *dtype = nullptr, *device = nullptr;      // shown as their text ...
  const char *dtype_name = "", *device_name = "";        // ... under these names; of static storage
  PyTypeObject* work = nullptr;                          // of an asynchronous communication
  PyTypeObject* process_group = nullptr;                 // that communicates
};

/// Where the elements of a tensor are, and how often they were changed.
struct TensorMemory {
  uint64_t storage = 0;  // equal for views of the same
  int64_t version = 0;
  bool on_host = true;
};

/// The base class is a framework that has nothing: no value is a tensor, nothing is hooked.
class CaptureFramework {
 public:
  CaptureFramework() = default;
  CaptureFramework(const CaptureFramework&) = delete;
  CaptureFramework& operator=(const CaptureFramework&) = delete;
  virtual ~CaptureFramework() = default;

  const FrameworkTypes& types() const { return types_; }
  const FrameworkNames& names() const { return names_; }

  // The state of the interpreter.
  /// A compiler looks at the code: tensors are none, and what is seen now never runs again.
  virtual bool Compiling() const { return false; }
  /// Modes or subclasses of the user see calls of functions, ours included.
  virtual bool OverridesActive() const { return false; }
  /// A context manager within which they do not; null without one.
  virtual PyObject* NewOverrideGuard() const { return nullptr; }

  // Tensors.
  /// Appends a plain tensor whose memory may be read here, or which a device reduces. False: nothing was appended,
  /// it is described in Python.
  virtual bool RecordTensor(Record*, PyObject* /*tensor*/, const TensorLabel*) { return false; }
  /// A plain tensor whose memory may be read here and now.
  virtual bool LookAt(PyObject* /*tensor*/, TensorLook*) { return false; }
  /// False: nothing is known.
  virtual bool MemoryOf(PyObject* /*tensor*/, TensorMemory*) { return false; }
  /// A call wrote every element of a tensor.
  virtual void NoteWritten(PyObject* /*tensor*/) {}
  /// One that the record held undecided is to be saved after all, under this name.
  virtual void SaveHeld(Record*, const HeldValue&, const std::string& /*name*/) {}
  /// Of the files that tensors are saved in.
  virtual const char* file_ending() const { return ".pt"; }
  /// A communication that nobody has waited for will fill it.
  virtual bool IsAwaited(PyObject* /*tensor*/) const { return false; }
  /// Waits, as its use would.
  virtual void Await(PyObject* /*tensor*/) {}
  /// A copy with memory of its own.
  virtual Ref CopyOf(PyObject* /*tensor*/) { return {}; }

  // Calls of functions.
  /// One begins; what waits in the backward pass before it has its turn first.
  virtual void BeforeApi() {}
  /// A call that may change tensors where they lie: what was recorded of them and not read yet is read first. Of its
  /// arguments the first, borrowed; may be null.
  virtual void BeforeWrite(PyObject* /*first*/) {}
  /// What must be known of the arguments before the call, which may change them, for the next.
  virtual std::shared_ptr<void> PrepareApiBackward(const CallArgs&) { return nullptr; }
  /// The backward of the call that made `output` is recorded under `name`.
  virtual void HookApiBackward(std::shared_ptr<void> /*prepared*/, PyObject* /*output*/, const OpName& /*name*/, Risk) {
  }

  // Steps.
  /// At start and stop: whatever region of compiled code a thread was in when recording ended is over, and no memory is
  /// followed any more.
  virtual void ForgetRegions() {}
  virtual void InstallModuleHooks() {}
  virtual void RemoveModuleHooks() {}
  /// No thread records any more: what waits for its turn in the backward pass has it now.
  virtual void FinishBackward() {}
  /// Entries of parameters of which others got no gradient.
  virtual void FinishParameterGradients() {}

 protected:
  FrameworkTypes types_;
  FrameworkNames names_;
};

extern CaptureFramework* current_framework;
/// Never null.
inline CaptureFramework& framework() { return *current_framework; }
/// `chosen` lives as long as the process.
void SetFramework(CaptureFramework* chosen);

}  // namespace msprobe
