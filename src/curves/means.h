// Logs that hold a mean of several steps, held against those of single ones.
#pragma once

#include <span>

#include "curves/curve.h"

namespace msprobe {

/// transformers and Megatron print the mean of the losses since the line before. Where such a run has a line for
/// several steps and others have one for each, the losses of these are averaged over the same steps, which is noted.
void AverageAlike(std::span<RunCurves* const> runs);

}  // namespace msprobe
