// Modules of two frameworks that belong together because the layers in them do, whatever holds these together.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "match/paired_modules.h"
#include "match/structure.h"

namespace msprobe {

/// False where what two modules contain says that they are not one, though they have one name or class.
bool MayBeOne(const Structure& target, uint32_t x, const Structure& golden, uint32_t y);

/// Of a layer and one that it is a part of, all the parts: "linear_fc1 is up_proj" means gate_proj, too. Nothing where
/// the two are one, or the layers beside the part do not make up the rest.
std::optional<JoinedLayers> WholeOfPart(const Structure& target, uint32_t x, const Structure& golden, uint32_t y);

struct LeafPairs {
  std::vector<std::pair<uint32_t, uint32_t>> pairs;
  std::vector<JoinedLayers> joined;
};

/// Pairs of modules below `t` and `g` that have no partner in `known`: layers in the order in which they run, and each
/// module whose layers are those of one module of the other side.
LeafPairs PairByLeaves(const Structure& target, uint32_t t, const Structure& golden, uint32_t g,
                       const ModulePairs& known);

}  // namespace msprobe
