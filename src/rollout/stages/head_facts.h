// The heads of a model whose configuration is not there: one side has q, k and v apart, and their shapes say it.
#pragma once

#include "weights/checkpoint.h"

namespace msprobe {

/// Fills in heads that make fused q, k and v of the one side fall into the parts of the other. True where it did: the
/// size of a head may be another one then.
bool InferHeads(Checkpoint* a, Checkpoint* b);

}  // namespace msprobe
