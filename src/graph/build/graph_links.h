// Which items of two nodes stand against each other, where it is not those at the same place.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "match/match_plan.h"

namespace msprobe {

using GraphLinks = std::unordered_map<uint32_t, OpLinks>;  // by op of the target

}  // namespace msprobe
