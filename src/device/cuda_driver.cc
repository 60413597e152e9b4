#include "device/cuda_driver.h"

#include <dlfcn.h>

namespace msprobe::device {
namespace {

bool Load(void* library, CudaDriver* driver) {
  bool all = true;
#define MSPROBE_CUDA_LOAD(member, name, arguments)                                   \
  driver->member = reinterpret_cast<decltype(driver->member)>(dlsym(library, name)); \
  all &= driver->member != nullptr;
  MSPROBE_CUDA_FUNCTIONS(MSPROBE_CUDA_LOAD)
#undef MSPROBE_CUDA_LOAD
  return all;
}

}  // namespace

const CudaDriver* CudaDriver::OfProcess() {
  // Kept open: what it started may end after everything here has.
  static void* const library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  static CudaDriver driver;
  static const bool loaded = library != nullptr && Load(library, &driver);
  return loaded ? &driver : nullptr;
}

std::string CudaDriver::NameOf(CuResult result) const {
  const char* name = nullptr;
  if (error_name(result, &name) == kCuSuccess && name != nullptr) return name;
  return "error " + std::to_string(result);
}

OnDevice::OnDevice(const CudaDriver& driver, CuContext context)
    : driver_(driver), pushed_(driver.context_push(context) == kCuSuccess) {
  driver_.exchange_capture_mode(&mode_);
}

OnDevice::~OnDevice() {
  driver_.exchange_capture_mode(&mode_);
  CuContext popped;
  if (pushed_) driver_.context_pop(&popped);
}

}  // namespace msprobe::device
