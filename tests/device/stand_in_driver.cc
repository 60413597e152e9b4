// Stands in for libcuda.so.1 in tests: launches run the kernel's host build, and faults happen when they are asked for.
// What a launch writes is seen when its event has come, as on a device. Faults are set by stand_in_set(), or from the
// start by the environment: STAND_IN_FAULTS="launch_fails=5,late=1".
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "device/cuda_driver.h"
#include "device/host_kernel.h"

namespace {

using msprobe::device::CuContext;
using msprobe::device::CuEvent;
using msprobe::device::CuFunction;
using msprobe::device::CuModule;
using msprobe::device::CuStream;
using msprobe::device::DeviceBatch;
using msprobe::device::DeviceTally;

enum Result {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kBadImage = 200,
  kInvalidContext = 201,
  kInvalidHandle = 400,
  kNotFound = 500,
  kNotReady = 600,
  kLaunchFailed = 719,
  kCaptureImplicit = 906,
};

struct Written {
  DeviceTally* to;
  std::vector<DeviceTally> tallies;
};

struct Event {
  std::vector<Written> writes;  // since the event was recorded last
};

struct Machine {
  std::mutex mutex;
  std::map<std::string, int64_t> set, counts;
  std::set<const void*> pinned;
  std::map<const void*, std::vector<Written>> streams;  // what was launched and belongs to no event yet
  std::set<Event*> events;
  bool lost = false;

  Machine() {
    const char* text = std::getenv("STAND_IN_FAULTS");
    std::istringstream faults(text ? text : "");
    for (std::string one; std::getline(faults, one, ',');) {
      const size_t at = one.find('=');
      set[one.substr(0, at)] = at == std::string::npos ? 1 : std::atoll(one.c_str() + at + 1);
    }
  }
};

Machine& TheMachine() {
  static auto* machine = new Machine;
  return *machine;
}

CuContext ContextOfDevice() {
  static char object;
  return reinterpret_cast<CuContext>(&object);
}
thread_local std::vector<CuContext> contexts;
thread_local int capture_mode = 0;

/// Counts a call; true when it is one of those that are asked to fail: fault=n, from the nth call on.
bool Fails(Machine& m, const char* call, const char* fault) {
  const int64_t number = ++m.counts[call];
  const auto found = m.set.find(fault);
  return found != m.set.end() && found->second > 0 && number >= found->second;
}

Result State(const Machine& m) {
  if (m.lost) return kLaunchFailed;
  return !contexts.empty() && contexts.back() == ContextOfDevice() ? kSuccess : kInvalidContext;
}

void Write(Event* event) {
  for (const Written& w : event->writes) std::memcpy(w.to, w.tallies.data(), w.tallies.size() * sizeof(DeviceTally));
  event->writes.clear();
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT void stand_in_set(const char* name, int64_t value) {
  Machine& m = TheMachine();
  const std::lock_guard lock(m.mutex);
  if (std::strcmp(name, "reset") == 0) {
    m.set.clear();
    m.counts.clear();
    m.lost = false;
    return;
  }
  m.set[name] = value;
}

EXPORT int64_t stand_in_count(const char* call) {
  Machine& m = TheMachine();
  const std::lock_guard lock(m.mutex);
  return m.counts[call];
}

EXPORT int cuInit(unsigned) {
  Machine& m = TheMachine();
  const std::lock_guard lock(m.mutex);
  return Fails(m, "init", "init_fails") ? kNotFound : kSuccess;
}

EXPORT int cuDeviceGet(int* device, int number) { return number == 0 ? (*device = 0, kSuccess) : kInvalidValue; }

EXPORT int cuDevicePrimaryCtxRetain(CuContext* context, int) { return *context = ContextOfDevice(), kSuccess; }

EXPORT int cuCtxPushCurrent_v2(CuContext context) { return contexts.push_back(context), kSuccess; }

EXPORT int cuCtxPopCurrent_v2(CuContext* context) {
  if (contexts.empty()) return kInvalidContext;
  *context = contexts.back();
  contexts.pop_back();
  return kSuccess;
}

EXPORT int cuModuleLoadData(CuModule* module, const void* image) {
  Machine& m = TheMachine();
  const std::lock_guard lock(m.mutex);
  if (Fails(m, "module", "module_fails")) return kBadImage;
  *module = static_cast<CuModule>(const_cast<void*>(image));
  return State(m);
}

EXPORT int cuModuleGetFunction(CuFunction* function, CuModule module, const char* name) {
  const std::string entry = std::string(".visible .entry ") + name + "(";
  *function = reinterpret_cast<CuFunction>(module);
  return std::strstr(reinterpret_cast<const char*>(module), entry.c_str()) != nullptr ? kSuccess : kNotFound;
}

EXPORT int cuMemHostAlloc(void** memory, size_t bytes, unsigned) {
  Machine& m = TheMachine();
  const std::lock_guard lock(m.mutex);
  if (Fails(m, "alloc", "alloc_fails")) return kOutOfMemory;
  if (State(m) != kSuccess) return State(m);
  *memory = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  m.pinned.insert(*memory);
  return kSuccess;
}

EXPORT int cuMemFreeHost(void* memory) {
  Machine& m = TheMachine();
  const std::lock_guard lock(m.mutex);
  if (m.pinned.erase(memory) == 0) return kInvalidValue;
  std::free(memory);
  return kSuccess;
}

EXPORT int cuMemHostGetDevicePointer_v2(unsigned long long* there, void* memory, unsigned) {
  *there = reinterpret_cast<uintptr_t>(memory);
  return kSuccess;
}

EXPORT int cuLaunchKernel(CuFunction, unsigned blocks, unsigned y, unsigned z, unsigned threads, unsigned, unsigned,
                          unsigned shared, CuStream stream, void** arguments, void**) {
  Machine& m = TheMachine();
  const std::lock_guard lock(m.mutex);
  if (Fails(m, "launch", "lost")) m.lost = true;
  const auto fault = m.set.find("launch_fails");
  if (fault != m.set.end() && fault->second > 0 && m.counts["launch"] >= fault->second) return kOutOfMemory;
  if (State(m) != kSuccess) return State(m);
  if (y != 1 || z != 1 || shared != 0 || threads != msprobe::device::kLanes || blocks == 0) return kInvalidValue;
  DeviceBatch batch = *static_cast<const DeviceBatch*>(arguments[0]);
  Written written{batch.parts, std::vector<DeviceTally>(blocks)};
  batch.parts = written.tallies.data();
  // For benchmarks: nothing is computed once a device has passed the three launches of its check.
  const bool idle = m.set["idle"] > 0 || (m.set["idle_after_check"] > 0 && m.counts["launch"] > 3);
  if (!idle) msprobe::device::RunBatch(batch, blocks);
  if (m.set["wrong"] > 0) ++written.tallies[0].max;
  m.streams[stream].push_back(std::move(written));
  return kSuccess;
}

EXPORT int cuStreamCreate(CuStream* stream, unsigned) {
  Machine& m = TheMachine();
  const std::lock_guard lock(m.mutex);
  *stream = reinterpret_cast<CuStream>(new char);
  return State(m);
}

EXPORT int cuStreamDestroy_v2(CuStream stream) {
  delete reinterpret_cast<char*>(stream);
  return kSuccess;
}

EXPORT int cuStreamIsCapturing(CuStream, int* status) {
  Machine& m = TheMachine();
  const std::lock_guard lock(m.mutex);
  *status = m.set["capturing"] == 1 ? 1 : 0;
  return m.set["capturing"] == 2 ? kCaptureImplicit : State(m);
}

EXPORT int cuThreadExchangeStreamCaptureMode(int* mode) {
  std::swap(*mode, capture_mode);
  return kSuccess;
}

EXPORT int cuEventCreate(CuEvent* event, unsigned) {
  Machine& m = TheMachine();
  const std::lock_guard lock(m.mutex);
  *event = reinterpret_cast<CuEvent>(*m.events.insert(new Event).first);
  return kSuccess;
}

EXPORT int cuEventDestroy_v2(CuEvent event) {
  Machine& m = TheMachine();
  const std::lock_guard lock(m.mutex);
  auto* own = reinterpret_cast<Event*>(event);
  if (m.events.erase(own) == 0) return kInvalidHandle;
  delete own;
  return kSuccess;
}

EXPORT int cuEventRecord(CuEvent event, CuStream stream) {
  Machine& m = TheMachine();
  const std::lock_guard lock(m.mutex);
  if (Fails(m, "record", "record_fails")) return kLaunchFailed;
  if (State(m) != kSuccess) return State(m);
  auto* to = reinterpret_cast<Event*>(event);
  for (Written& w : m.streams[stream]) to->writes.push_back(std::move(w));
  m.streams[stream].clear();
  return kSuccess;
}

EXPORT int cuEventQuery(CuEvent event) {
  Machine& m = TheMachine();
  const std::lock_guard lock(m.mutex);
  ++m.counts["query"];
  if (m.lost) return kLaunchFailed;
  if (m.set["late"] > 0) return kNotReady;
  Write(reinterpret_cast<Event*>(event));
  return kSuccess;
}

EXPORT int cuEventSynchronize(CuEvent event) {
  Machine& m = TheMachine();
  const std::lock_guard lock(m.mutex);
  ++m.counts["wait"];
  if (m.lost) return kLaunchFailed;
  Write(reinterpret_cast<Event*>(event));
  return kSuccess;
}

EXPORT int cuGetErrorName(int error, const char** name) {
  *name = error == kOutOfMemory    ? "CUDA_ERROR_OUT_OF_MEMORY"
          : error == kLaunchFailed ? "CUDA_ERROR_LAUNCH_FAILED"
                                   : nullptr;
  return *name != nullptr ? kSuccess : kInvalidValue;
}
