// The driver library of CUDA, as far as it is needed. It is not linked: whoever has tensors on such a device has loaded
// it.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace msprobe::device {

using CuResult = int;
using CuDevice = int;
using CuContext = struct CuContextObject*;
using CuModule = struct CuModuleObject*;
using CuFunction = struct CuFunctionObject*;
using CuStream = struct CuStreamObject*;
using CuEvent = struct CuEventObject*;

inline constexpr CuResult kCuSuccess = 0, kCuNotReady = 600;
inline constexpr unsigned kCuHostPortable = 1, kCuHostMapped = 2;
inline constexpr unsigned kCuEventWithoutTimes = 2, kCuStreamApart = 1;
inline constexpr int kCuCaptureNone = 0, kCuCaptureRelaxed = 2;

// Member, name in the library, arguments.
#define MSPROBE_CUDA_FUNCTIONS(F)                                                                                 \
  F(init, "cuInit", (unsigned))                                                                                   \
  F(device_get, "cuDeviceGet", (CuDevice*, int))                                                                  \
  F(context_retain, "cuDevicePrimaryCtxRetain", (CuContext*, CuDevice))                                           \
  F(context_push, "cuCtxPushCurrent_v2", (CuContext))                                                             \
  F(context_pop, "cuCtxPopCurrent_v2", (CuContext*))                                                              \
  F(module_load, "cuModuleLoadData", (CuModule*, const void*))                                                    \
  F(function_get, "cuModuleGetFunction", (CuFunction*, CuModule, const char*))                                    \
  F(host_alloc, "cuMemHostAlloc", (void**, size_t, unsigned))                                                     \
  F(host_free, "cuMemFreeHost", (void*))                                                                          \
  F(host_device_pointer, "cuMemHostGetDevicePointer_v2", (unsigned long long*, void*, unsigned))                  \
  F(launch, "cuLaunchKernel",                                                                                     \
    (CuFunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CuStream, void**, void**)) \
  F(stream_create, "cuStreamCreate", (CuStream*, unsigned))                                                       \
  F(stream_destroy, "cuStreamDestroy_v2", (CuStream))                                                             \
  F(stream_is_capturing, "cuStreamIsCapturing", (CuStream, int*))                                                 \
  F(exchange_capture_mode, "cuThreadExchangeStreamCaptureMode", (int*))                                           \
  F(event_create, "cuEventCreate", (CuEvent*, unsigned))                                                          \
  F(event_destroy, "cuEventDestroy_v2", (CuEvent))                                                                \
  F(event_record, "cuEventRecord", (CuEvent, CuStream))                                                           \
  F(event_query, "cuEventQuery", (CuEvent))                                                                       \
  F(event_synchronize, "cuEventSynchronize", (CuEvent))                                                           \
  F(error_name, "cuGetErrorName", (CuResult, const char**))

struct CudaDriver {
#define MSPROBE_CUDA_MEMBER(member, name, arguments) CuResult(*member) arguments = nullptr;
  MSPROBE_CUDA_FUNCTIONS(MSPROBE_CUDA_MEMBER)
#undef MSPROBE_CUDA_MEMBER

  /// Null where this process has not loaded it, or it lacks a function.
  static const CudaDriver* OfProcess();

  std::string NameOf(CuResult result) const;
};

/// While it lives this thread works on a device, and may do what would break the capture of a graph by another thread.
class OnDevice {
 public:
  OnDevice(const CudaDriver& driver, CuContext context);
  ~OnDevice();
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  const CudaDriver& driver_;
  bool pushed_;
  int mode_ = kCuCaptureRelaxed;
};

}  // namespace msprobe::device
