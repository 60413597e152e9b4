#include "bindings/python/step.h"

#include <filesystem>
#include <new>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "bindings/python/api_site.h"
#include "bindings/python/deferred.h"
#include "bindings/python/framework.h"
#include "bindings/python/kept.h"
#include "bindings/python/runtime.h"
#include "bindings/python/works.h"

namespace msprobe {
namespace {

using Part = OutputGate::Part;

// Status functions here touch no Python object: they run without the GIL.
Status OpenFiles(const std::string& dir, const std::string& task, const std::string& level, uint64_t ranks) {
  Runtime& r = rt();
  Status status;
  try {
    status = MakeOutputDir(dir);
    std::string tensor_dir;
    if (status.ok() && r.recorder->save_policy().saves()) {
      std::error_code error;
      tensor_dir = JoinPath(std::filesystem::absolute(dir, error).lexically_normal().string(), "dump_tensor_data");
      status = r.files->Open(tensor_dir);
    }
    if (status.ok()) {
      const bool extra_info = r.options.extra_info && level != "debug";
      status = r.recorder->Open({dir, task, level, framework().names(), extra_info, tensor_dir, ranks});
    }
  } catch (const std::bad_alloc&) {
    status = NoMemory();
  }
  return status;
}

// Tensors before the ops that name them: what is reported flushed is there with its files.
Status FlushFiles() {
  Runtime& r = rt();
  try {
    (void)r.files->Finish();
    const Status ops = r.recorder->Flush();
    return ops.ok() ? r.files->TakeStatus() : ops;
  } catch (const std::bad_alloc&) {
    return NoMemory();
  }
}

Status CloseFiles() {
  Runtime& r = rt();
  OutputGate& gate = r.recorder->gate();
  try {
    const bool saved = r.files->is_open(), stopped = !gate.open(Part::kTensors);
    const Status tensors = r.files->Close();
    if (saved) {
      const TensorFileCounts counts = r.files->counts();
      gate.AddWritten(Part::kTensors, counts.bytes, counts.saved);
      gate.AddSkipped(Part::kTensors, counts.dropped);
      if (!tensors.ok()) gate.Stop(Part::kTensors, OutputGate::Until::kEndOfStep, tensors.message());
    }
    CountNoMemory();
    const Status ops = r.recorder->Close(r.skipped);
    const Status untold = r.files->TakeStatus();
    return ops.ok() && !stopped ? untold : ops;
  } catch (const std::bad_alloc&) {
    try {
      (void)r.recorder->Close({});  // nothing where it is closed already
    } catch (const std::bad_alloc&) {
    }
    return NoMemory();
  }
}

template <typename Work>
Status WithoutGil(Work work) {
  const GilReleased released;
  return work();
}

// No thread records any more, and what waits for its turn in the backward has had it.
void StopRecording() {
  Runtime& r = rt();
  t_flags.finishing = std::exchange(r.running, false);
  WaitForOtherThreads();
  Shielded([] { framework().FinishBackward(); });
  t_flags.finishing = false;
}

}  // namespace

Status StartStep(const std::string& dir, const std::string& task, const std::string& level, uint64_t ranks) {
  Runtime& r = rt();
  const Status opened = WithoutGil([&] { return OpenFiles(dir, task, level, ranks); });
  if (!opened.ok()) return opened;
  if (OutputGate& gate = r.recorder->gate(); r.files->is_open() && !gate.open(Part::kTensors)) {
    r.files->Stop(InternalError(gate.step(Part::kTensors).reason));
  }
  Shielded([] { framework().ForgetRegions(); });
  Shielded(InstallApis);  // at L0 those that are not ops: regions that are left alone
  if (r.options.modules) Shielded([] { framework().InstallModuleHooks(); });
  r.step_open = true;
  r.running = !r.trigger.exhausted();
  return OkStatus();
}

Status StopStep() {
  StopRecording();
  Shielded(CollectDone);
  Shielded([] { framework().ForgetRegions(); });
  Shielded(RemoveApis);
  Shielded([] { framework().RemoveModuleHooks(); });
  if (!rt().step_open) return OkStatus();
  Shielded([] { framework().FinishParameterGradients(); });
  Shielded(FetchDeferred);
  return WithoutGil(FlushFiles);
}

Status EndStep() {
  Runtime& r = rt();
  if (!r.step_open) return OkStatus();
  StopRecording();
  Shielded(GiveUpOpenWorks);
  r.step_open = false;
  if (!ApisInstalled()) Shielded(RemoveApis);  // those that waited for works
  Shielded([] { framework().FinishParameterGradients(); });
  Shielded(EndKeeping);
  ++r.generation;         // calls that are still running find their records stale ...
  WaitForOtherThreads();  // ... or have finished them
  Shielded(FetchDeferred);
  const Status closed = WithoutGil(CloseFiles);
  EndDeferred();
  r.filter.Reset();
  return closed;
}

}  // namespace msprobe
