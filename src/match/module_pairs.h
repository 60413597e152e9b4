// Which module of one model is which of the other: by name, and where names differ, by class, contents, parameters and
// order.
#pragma once

#include <vector>

#include "match/mapping.h"
#include "match/paired_modules.h"
#include "match/structure.h"

namespace msprobe {

/// `rules`, the user's own layer mapping, come first. Modules inside partners are looked at from the top down; what is
/// left over is then looked for elsewhere in the model.
ModulePairs PairModules(const Structure& target, const Structure& golden, const std::vector<LayerRule>& rules);

}  // namespace msprobe
