// Tensors as the kernel takes them, and what it finds as statistics.
#pragma once

#include <cstdint>
#include <span>

#include "device/kernel.h"
#include "tensor/kernels/stats.h"
#include "tensor/kernels/tensor_view.h"

namespace msprobe::device {

/// Whose numbers the tallies of some parts are.
struct DeviceShape {
  DType dtype = DType::kUnknown;
  int64_t count = 0;    // elements that the kernel reads
  int64_t repeats = 1;  // how often the tensor shows each of them
  int32_t parts = 0;
};

/// False when the kernel cannot read it: no elements, an unknown type, more than kMostDims dimensions after those that
/// lie in one run are joined, or an address at which no element of its type may lie. `first_part` is left to the
/// caller.
bool DescribeForKernel(const TensorView& view, DeviceTensor* tensor, DeviceShape* shape);

/// As ComputeStats() gives it: extremes and counts are the same, the absolute values of complex32, and of complex128
/// beyond 1e150, within a unit in the last place; sums differ by rounding in double, and from the float sums of
/// ComputeStats() within the bounds that Stats states.
Stats StatsOfTallies(const DeviceShape& shape, std::span<const DeviceTally> parts);

}  // namespace msprobe::device
