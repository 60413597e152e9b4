// The part of the DLPack ABI (github.com/dmlc/dlpack, version 1) that is needed to look at a tensor without linking a
// framework.
#pragma once

#include <cstdint>

namespace msprobe {

struct DlpackTensor {
  void* data;
  struct {
    int32_t type;  // 1: host memory
    int32_t id;
  } device;
  int32_t ndim;
  struct {
    uint8_t code, bits;
    uint16_t lanes;
  } dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};

struct DlpackExchangeApi {
  struct {
    struct {
      uint32_t major, minor;
    } version;
    void* previous;
  } header;
  void *allocator, *managed_from_object, *managed_to_object;
  int (*tensor_from_object)(void* object, DlpackTensor* out);  // borrowed; 0, or a Python exception is raised
  int (*current_work_stream)(int32_t device_type, int32_t device, void** out);  // may be null
};

inline constexpr int32_t kDlpackCpu = 1, kDlpackCuda = 2;

}  // namespace msprobe
