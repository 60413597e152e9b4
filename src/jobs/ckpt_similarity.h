// The comparison of two checkpoints as mindstudio-probe writes it: l2, cos, numel and shape of each parameter.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace msprobe {

struct SimilarityReport {
  size_t compared = 0;
  std::vector<std::string> only_a, only_b;
};

/// Parameters of one name are compared, Megatron's under the names of its newest version; `output` must not exist yet.
StatusOr<SimilarityReport> WriteCheckpointSimilarity(const std::string& a, const std::string& b,
                                                     const std::string& output);

}  // namespace msprobe
