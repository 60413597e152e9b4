#include "bindings/device/device_values.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "bindings/python/deferred.h"
#include "bindings/python/runtime.h"
#include "device/device_queue.h"

namespace msprobe {
namespace {

using device::CudaDriver;
using device::DeviceQueue;

struct Started {
  int32_t slot;
  bool integer;
  Ref tensor;
};

struct KernelState {
  explicit KernelState(const CudaDriver& driver)
      : queue(driver, [](const std::function<void()>& wait) {
          const GilReleased released;
          wait();
        }) {}

  DeviceQueue queue;
  std::vector<Started> open;  // may still have to go to the framework
};

// Never destroyed: the driver may be gone by then.
KernelState* TheKernel() {
  static KernelState* const kernel = [] {
    const CudaDriver* driver = CudaDriver::OfProcess();
    return driver != nullptr ? new KernelState(*driver) : nullptr;
  }();
  return kernel;
}

/// Frees the tensors that were started, which may run code of the training.
void Free(KernelState* kernel) {
  std::vector<Started> freed;
  freed.swap(kernel->open);
  freed.clear();
  if (kernel->open.capacity() == 0) kernel->open.swap(freed);  // keeps its memory
}

void GiveToFramework(KernelState* kernel, int32_t slot) {
  const auto found =
      std::find_if(kernel->open.begin(), kernel->open.end(), [&](const Started& one) { return one.slot == slot; });
  if (found != kernel->open.end()) {
    const Started one = std::move(*found);
    kernel->open.erase(found);
    if (DeferInFramework(one.tensor.get(), slot, false, one.integer)) return;
  } else {  // another thread let go of it while this one waited
    NoteSkip("the values of a tensor could not be computed on its device", "its kernel was not started");
  }
  DeliverNothing(slot);
}

/// Hands on what came of the calls of the queue.
void Settle(KernelState* kernel) {
  for (const int32_t slot : kernel->queue.TakeLeft()) GiveToFramework(kernel, slot);
  const std::vector<device::ArrivedStats> arrived = kernel->queue.TakeArrived();
  for (const device::ArrivedStats& one : arrived) {
    if (one.known) {
      DeliverStats(one.slot, one.stats);
    } else {
      DeliverNothing(one.slot);
      NoteSkip("the values of a tensor did not come from its device", "slot " + std::to_string(one.slot));
    }
  }
  if (!kernel->queue.has_batch()) Free(kernel);
  if (!arrived.empty()) ResolveDeferred();
}

/// Before the training goes on, which may write to what was taken.
void LaunchStarted() noexcept {
  KernelState* kernel = TheKernel();
  if (!kernel->queue.has_batch()) return;
  Shielded([&] {
    ErrorStash stash;
    kernel->queue.Launch();
    Settle(kernel);
  });
}

void FetchStarted() {
  TheKernel()->queue.Fetch();
  Settle(TheKernel());
}

bool StartInKernel(PyObject* tensor, const TensorView& view, const KernelPlace& place, int32_t slot) {
  KernelState* kernel = place.known ? TheKernel() : nullptr;
  if (kernel == nullptr) return false;
  // Before the first one, nothing is asked for at the end of each section of ours.
  interpreter().launch_started = LaunchStarted;
  interpreter().fetch_started = FetchStarted;
  const bool taken = kernel->queue.Add(place.device, static_cast<device::CuStream>(place.stream), view, slot);
  if (taken) kernel->open.push_back({slot, IsInteger(view.dtype), Ref::Borrow(tensor)});
  if (taken && t_flags.tool == nullptr) kernel->queue.Launch();
  Settle(kernel);
  return taken;
}

}  // namespace

int32_t DeferTensor(PyObject* tensor, const TensorView& view, int64_t count, const KernelPlace& place, bool checksums,
                    const std::string& file) {
  if (count == 0 || interpreter().defer_tensor == nullptr) return -1;
  const int32_t slot = NewTensorSlot(view, count, checksums, file);
  const bool elements = checksums || !file.empty();
  if (!elements && StartInKernel(tensor, view, place, slot)) return slot;
  if (DeferInFramework(tensor, slot, elements, IsInteger(view.dtype))) return slot;
  DropSlot(slot);
  return -1;
}

std::string TakeKernelFault() {
  // A device that failed its check has taken nothing.
  return interpreter().fetch_started != nullptr ? TheKernel()->queue.TakeFault() : std::string();
}

}  // namespace msprobe
