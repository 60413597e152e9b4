// What pairing the modules of two models gives.
#pragma once

#include <cstdint>
#include <vector>

namespace msprobe {

/// Layers of one side that the other computes as one: query, key and value, or gate and up. One of the two is one
/// layer.
struct JoinedLayers {
  std::vector<uint32_t> targets, goldens;
};

struct ModulePairs {
  std::vector<uint32_t> golden_of;        // for each module of the target, or kNoModule
  std::vector<uint32_t> target_of;        // for each module of the golden run, or kNoModule
  std::vector<JoinedLayers> joined = {};  // of two frameworks; they have no partner in the lists above
};

}  // namespace msprobe
