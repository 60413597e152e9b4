// What is left of a trainer or an engine in files and directories: each file is recognised by what is in it.
#pragma once

#include <string>
#include <vector>

#include "rollout/evidence.h"

namespace msprobe {

/// Looks some levels deep; links to directories are not followed. kBadInput for a path that does not exist, for a file
/// that was named and cannot be read, and where nothing is known.
StatusOr<SideEvidence> FindSideEvidence(const std::vector<std::string>& paths, RolloutSide side);

/// Checkpoints below the paths, by their steps.
StatusOr<std::vector<SideWeights>> FindWeights(const std::vector<std::string>& paths);

/// Earlier steps in directories beside that of a checkpoint, the nearest few; those that cannot be read are left out.
std::vector<SideWeights> FindStepsBeside(const SideWeights& weights);

}  // namespace msprobe
