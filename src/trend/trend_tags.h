// The tags of a target's name, as the trend page offers them for choosing.
#pragma once

#include <set>
#include <string_view>

#include "trend/trend_db.h"

namespace msprobe {

/// Of dumps: "Module.blocks.3.fc.Linear.input.0" has Module (default), blocks.3 (layer), fc.Linear (module) and input.0
/// (index); "Functional.linear.input.0" has Functional.linear (function) and input.0.
std::set<TrendTag> DumpTags(std::string_view target);
/// Of the monitor: "layers.22.mlp.fc1" has layers.22 (layer) and each word (module).
std::set<TrendTag> MonitorTags(std::string_view target);

}  // namespace msprobe
