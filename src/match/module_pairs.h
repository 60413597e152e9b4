// Which module of one model is which of the other: by name, and where names differ, by class, contents, parameters and
// order.
#pragma once

#include <cstdint>
#include <vector>

#include "match/mapping.h"
#include "match/structure.h"

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

/// `rules`, the user's own layer mapping, come first. Modules inside partners are looked at from the top down; what is
/// left over is then looked for elsewhere in the model.
ModulePairs PairModules(const Structure& target, const Structure& golden, const std::vector<LayerRule>& rules);

}  // namespace msprobe
