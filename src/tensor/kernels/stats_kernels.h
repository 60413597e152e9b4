// What the statistics kernels of the instruction sets share. A kernel reads one contiguous run of elements and adds
// what it finds to a Partial; stats.cc cuts tensors into runs and folds the partials in a fixed order.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "tensor/kernels/dtype.h"
#include "tensor/kernels/small_floats.h"

namespace msprobe {
struct Stats;
}

namespace msprobe::stats {

/// Running sums that the vector kernels of floats keep apart.
inline constexpr size_t kLanes = 32;

/// Sums and extremes of some elements. Extremes skip NaN; nan_count tells that there was one.
struct Found {
  double max = -std::numeric_limits<double>::infinity();
  double min = std::numeric_limits<double>::infinity();
  double sum = 0, squares = 0;
  int64_t int_max = std::numeric_limits<int64_t>::min();
  int64_t int_min = std::numeric_limits<int64_t>::max();
  uint64_t uint_max = 0;
  uint64_t uint_min = std::numeric_limits<uint64_t>::max();
  int64_t nan_count = 0, inf_count = 0;
};

/// What kernels add to, run by run.
struct Partial : Found {
  // Not yet in `sum` and `squares`: folding them after each run would take a tenth of the time of reading it.
  alignas(64) double lane_sums[kLanes] = {};
  alignas(64) double lane_squares[kLanes] = {};
};

using Kernel = void (*)(const void* data, size_t n, Partial* acc);
/// Runs that are read side by side.
inline constexpr size_t kSides = 4;
/// Reads kSides runs of n elements each.
using SidesKernel = void (*)(const void* const* data, size_t n, Partial* acc);

struct StatsTable {
  const char* name;
  Kernel by_dtype[static_cast<size_t>(DType::kUnknown)];
  SidesKernel sides[static_cast<size_t>(DType::kUnknown)];  // null: one run after another
};

// Null when the compiler's target does not know the instruction set, or this machine cannot run it.
const StatsTable* ScalarKernels();
const StatsTable* Avx2Kernels();
const StatsTable* Avx512Kernels();
const StatsTable* NeonKernels();

/// Kernels of rare types, shared by every table: float8 (by counting bytes) and complex.
Kernel PlainKernel(DType t);

/// What is kept of a tensor, of what was found in its `count` elements that lie apart, each of which it shows `repeats`
/// times; the norm is that of the whole.
void FinishStats(DType dtype, const Found& found, int64_t count, int64_t repeats, double norm, Stats* out);

}  // namespace msprobe::stats
