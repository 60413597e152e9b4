#include "device/statistics.h"

#include <algorithm>
#include <cmath>

#include "tensor/kernels/finfo.h"
#include "tensor/kernels/layout.h"
#include "tensor/kernels/stats_kernels.h"

namespace msprobe::device {
namespace {

uintptr_t AlignmentOf(DType type) { return ElementSize(IsComplex(type) ? InfoOf(type).real : type); }

// The scales are powers of two, and only one of two neighbouring sums adds to what the larger one has of digits.
double Norm(const DeviceTally& all, double repeats) {
  constexpr int kLargePower = 600, kSmallPower = -600;
  if (all.large_squares > 0) {
    return std::ldexp(std::sqrt((all.large_squares + std::ldexp(all.squares, -2 * kLargePower)) * repeats),
                      kLargePower);
  }
  if (all.squares > 0 || std::isnan(all.squares)) {
    return std::sqrt((all.squares + std::ldexp(all.small_squares, 2 * kSmallPower)) * repeats);
  }
  return std::ldexp(std::sqrt(all.small_squares * repeats), kSmallPower);
}

}  // namespace

bool DescribeForKernel(const TensorView& view, DeviceTensor* tensor, DeviceShape* shape) {
  Layout layout;
  if (!MakeLayout(view, Order::kMemory, &layout) || layout.count == 0 || layout.data == nullptr) return false;
  if (!layout.contiguous() && layout.ndim > kMostDims) return false;
  if (reinterpret_cast<uintptr_t>(layout.data) % AlignmentOf(view.dtype) != 0) return false;
  tensor->data = layout.data;
  tensor->count = layout.count;
  const int64_t even = (layout.count + kMostParts - 1) / kMostParts;
  tensor->part_elements = std::max(kPartElements, (even + kLanes - 1) / kLanes * kLanes);
  tensor->dtype = view.dtype;
  tensor->ndim = layout.contiguous() ? 0 : static_cast<uint8_t>(layout.ndim);
  std::copy_n(layout.shape, tensor->ndim, tensor->shape);
  std::copy_n(layout.strides, tensor->ndim, tensor->strides);
  const int64_t parts = (layout.count + tensor->part_elements - 1) / tensor->part_elements;
  *shape = {view.dtype, layout.count, layout.repeats, static_cast<int32_t>(parts)};
  return true;
}

Stats StatsOfTallies(const DeviceShape& shape, std::span<const DeviceTally> parts) {
  const TallyKind kind = KindOf(shape.dtype);
  DeviceTally all = parts[0];
  for (const DeviceTally& part : parts.subspan(1)) FoldTally(kind, part, &all);
  stats::Found found;
  found.sum = all.sum;
  found.nan_count = all.nan_count;
  found.inf_count = all.inf_count;
  switch (kind) {
    case TallyKind::kFloating:
      found.max = __builtin_bit_cast(double, all.max);
      found.min = __builtin_bit_cast(double, all.min);
      break;
    case TallyKind::kSigned:
      found.int_max = static_cast<int64_t>(all.max);
      found.int_min = static_cast<int64_t>(all.min);
      break;
    case TallyKind::kUnsigned:
      found.uint_max = all.max;
      found.uint_min = all.min;
      break;
  }
  Stats out;
  stats::FinishStats(shape.dtype, found, shape.count, shape.repeats, Norm(all, static_cast<double>(shape.repeats)),
                     &out);
  return out;
}

}  // namespace msprobe::device
