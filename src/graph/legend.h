// Colours and explanations that a graph file carries for its viewers.
#pragma once

#include <string>

#include "graph/precision.h"

namespace msprobe {

/// tb_config.node_colors and tb_config.tool_tip of a comparison, as JSON.
std::string NodeColorsJson(GraphMode mode);
std::string ToolTipJson(GraphMode mode);

}  // namespace msprobe
