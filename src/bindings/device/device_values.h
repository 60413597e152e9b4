// Statistics by the kernel of devices (device/device_queue.h) where the framework need not compute them. Under the GIL.
#pragma once

#include <cstdint>
#include <string>

#include "bindings/python/py.h"
#include "tensor/kernels/tensor_view.h"

namespace msprobe {

/// Where the memory of a tensor is, for the kernel; without it the framework computes.
struct KernelPlace {
  bool known = false;
  int device = 0;
  void* stream = nullptr;  // that the tensor is used on now
};

/// The slot in which the values of `tensor`, of `count` elements, will arrive; -1 when there are none, which was
/// counted. With a `file` it will also be saved there. The kernel reads the memory of `view` before the training goes
/// on; what it cannot do is left to the framework.
int32_t DeferTensor(PyObject* tensor, const TensorView& view, int64_t count, const KernelPlace& place, bool checksums,
                    const std::string& file);

/// Why the kernel of a device is no longer used; once, else empty.
std::string TakeKernelFault();

}  // namespace msprobe
