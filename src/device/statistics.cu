// The entry of the kernel. `python tools/ptx.py` makes statistics.ptx of it, which is what the product holds.
#include <cstddef>
#include <cstdint>
#include <string_view>

#pragma clang force_cuda_host_device begin
#include "device/kernel.h"
#pragma clang force_cuda_host_device end

using msprobe::device::DeviceBatch;
using msprobe::device::DeviceTally;
using msprobe::device::DeviceTensor;
using msprobe::device::FoldTally;
using msprobe::device::KindOf;
using msprobe::device::kLanes;

/// One block for each part; its tally goes to `batch.parts`, which is host memory that the device can write.
extern "C" __attribute__((global)) void msprobe_statistics(const DeviceBatch batch) {
  static __attribute__((shared)) DeviceTally lanes[kLanes];
  static __attribute__((shared)) DeviceTensor tensor;
  const int part = __nvvm_read_ptx_sreg_ctaid_x(), lane = __nvvm_read_ptx_sreg_tid_x();
  // Word by word: the compiler then reads the argument where it is, instead of copying all of it for each lane.
  constexpr int kTensorWords = sizeof(DeviceTensor) / sizeof(uint64_t);
  if (lane < kTensorWords) {
    const auto* from = reinterpret_cast<const uint64_t*>(&batch.tensor[TensorOfPart(batch, part)]);
    reinterpret_cast<uint64_t*>(&tensor)[lane] = from[lane];
  }
  __syncthreads();
  TallyLane(tensor, part - tensor.first_part, lane, &lanes[lane]);
  for (int half = kLanes / 2; half > 0; half /= 2) {
    __syncthreads();
    if (lane < half) FoldTally(KindOf(tensor.dtype), lanes[lane + half], &lanes[lane]);
  }
  __syncthreads();
  // Eight lanes write the 64 bytes at once: the memory is on the other side of a bus.
  constexpr int kWords = sizeof(DeviceTally) / sizeof(uint64_t);
  if (lane < kWords) {
    reinterpret_cast<uint64_t*>(batch.parts + part)[lane] = reinterpret_cast<const uint64_t*>(lanes)[lane];
  }
}
