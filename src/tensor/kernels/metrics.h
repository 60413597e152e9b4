// How much two tensors differ, in one pass over both, read where they are.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "tensor/kernels/pair_loop.h"
#include "tensor/kernels/pair_metrics.h"
#include "tensor/kernels/tensor_view.h"

namespace msprobe {

struct MetricsOptions {
  int worst = 0;        // how many of the worst elements to look up, at most kMostWorst
  bool threads = true;  // split large tensors over threads
  /// Called with each stretch of a contiguous tensor that is done with, from any thread: for maps of files.
  std::function<void(const void* begin, size_t bytes)> release;
  std::span<const PairLoop* const> loops;  // see the elements beside the kernels
};
inline constexpr int kMostWorst = 10;

/// Both tensors may have any strides and any dtype, also two different ones. The result does not depend on the
/// instruction set or on the number of threads. After an interrupt there is none: kNoNumbers.
TensorMetrics CompareTensors(const TensorView& target, const TensorView& golden, const MetricsOptions& options = {});

/// The place of an element in each dimension, from its index in C order.
std::vector<int64_t> MultiIndex(const TensorView& t, int64_t index);

/// Instruction set of the kernels, as StatsIsa().
const char* MetricsIsa();
/// For tests and benchmarks; false when this machine cannot run it.
bool SetMetricsIsa(const char* name);

}  // namespace msprobe
