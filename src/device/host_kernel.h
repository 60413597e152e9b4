// The kernel on this machine: what a block of the device does, lane after lane.
#pragma once

#include "device/kernel.h"

namespace msprobe::device {

inline DeviceTally TallyPart(const DeviceTensor& t, int64_t part) {
  DeviceTally lanes[kLanes];
  for (int lane = 0; lane < kLanes; ++lane) TallyLane(t, part, lane, &lanes[lane]);
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int lane = 0; lane < half; ++lane) FoldTally(KindOf(t.dtype), lanes[lane + half], &lanes[lane]);
  }
  return lanes[0];
}

/// A launch of as many blocks.
inline void RunBatch(const DeviceBatch& batch, int64_t blocks) {
  for (int64_t part = 0; part < blocks; ++part) {
    const DeviceTensor& t = batch.tensor[TensorOfPart(batch, static_cast<int32_t>(part))];
    batch.parts[part] = TallyPart(t, part - t.first_part);
  }
}

}  // namespace msprobe::device
