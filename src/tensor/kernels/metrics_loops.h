// Runs of two tensors for loops that know doubles only.
#pragma once

#include <span>

#include "tensor/kernels/metrics_sources.h"
#include "tensor/kernels/pair_loop.h"

namespace msprobe::metrics {

/// Adds a run to the sums of each loop.
void AddRun(const PairReader& pair, const Run& run, std::span<const PairLoop* const> loops, LoopSums* sums);

}  // namespace msprobe::metrics
