// Max, Min, Mean and Norm of a tensor in one pass over its elements, read where they are.
#pragma once

#include <cstdint>

#include "tensor/kernels/tensor_view.h"

namespace msprobe {

/// What a dump keeps of a tensor. Sums run in double, of float32, bfloat16 and float16 over sums of 32 elements in
/// float: the mean is exact to 2e-6 of the mean absolute value, the norm to 1e-6 of itself. They do not depend on the
/// instruction set or the thread count.
struct Stats {
  double max = 0, min = 0;              // of floating, bool (0/1) and complex (absolute value) tensors
  int64_t int_max = 0, int_min = 0;     // exact, of signed integer tensors
  uint64_t uint_max = 0, uint_min = 0;  // exact, of unsigned integer tensors
  double mean = 0;                      // arithmetic mean
  double norm = 0;                      // L2 norm: sqrt(sum of |x|^2)
  int64_t count = 0;                    // elements, broadcast ones counted as often as they appear
  int64_t nan_count = 0, inf_count = 0;
};

/// How much larger the largest magnitude of a float16 or bfloat16 tensor may become before it overflows, 1 to
/// kNearOverflow; 0 where it is farther away, where elements are not finite and for other types.
double OverflowMargin(DType dtype, const Stats& stats);
inline constexpr double kNearOverflow = 8;

/// Any NaN makes max, min, mean and norm NaN; infinities propagate as in IEEE arithmetic. Empty tensor: count 0, rest
/// 0. Returns false when the dtype has no statistics (kUnknown) or ndim > kMaxDims.
bool ComputeStats(const TensorView& t, Stats* out);

/// The plain loop that the vector kernels are tested against; same contract.
bool ComputeStatsScalar(const TensorView& t, Stats* out);

/// ComputeStats and ComputeCrc32 with one trip to memory where the elements lie in C order; the same values to the bit.
bool ComputeStatsAndCrc32(const TensorView& t, Stats* out, uint32_t* crc);

/// Instruction set of the kernels: "scalar", "avx2", "avx512", "neon".
const char* StatsIsa();
/// For tests and benchmarks; false when this machine cannot run it.
bool SetStatsIsa(const char* name);

}  // namespace msprobe
