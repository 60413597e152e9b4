// The parameters that modules of a recorded step have, as a checkpoint.
#pragma once

#include <string>

#include "rollout/evidence.h"
#include "weights/checkpoint.h"

namespace msprobe {

/// Without tensors where their values were not saved. kBadInput for a dump that cannot be read.
StatusOr<Checkpoint> OpenDumpWeights(const std::string& dump);

/// Weights of a side in its dumps: of the last step, where one rank recorded it. Nothing where they were not saved.
std::vector<SideWeights> FindDumpWeights(const SideEvidence& side);

}  // namespace msprobe
