// Colours and explanations that a graph file carries for its viewers.
#pragma once

#include <string>

#include "compare/values/item_view.h"

namespace msprobe {

/// tb_config.node_colors and tb_config.tool_tip of a comparison, as JSON.
std::string NodeColorsJson(CompareMode mode);
std::string ToolTipJson(CompareMode mode);

}  // namespace msprobe
