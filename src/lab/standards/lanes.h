// Some numbers at a time. Both compilers take these types apart where the machine has no registers as wide.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

namespace msprobe::lanes {

inline constexpr size_t kLanes = 4;
using Doubles = double __attribute__((vector_size(kLanes * sizeof(double))));
using Bits = int64_t __attribute__((vector_size(kLanes * sizeof(int64_t))));
using Words = uint64_t __attribute__((vector_size(kLanes * sizeof(uint64_t))));
using Floats = float __attribute__((vector_size(kLanes * sizeof(float))));
inline constexpr int64_t kSign = std::numeric_limits<int64_t>::min();  // of the bits of a float64

}  // namespace msprobe::lanes
