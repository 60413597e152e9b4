// What a graph file says of itself and of a node, in whatever layout it is.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graph/node/overflow.h"
#include "view/file/cells.h"

namespace msprobe::view {

struct VisSettings {
  bool compared = false;
  std::string task;
  int64_t micro_steps = 0;
  bool overflow_check = false;
  bool verdicts = false;      ///< the ruler judges its nodes
  std::string colors_json;    ///< "" when there is none
  std::string tool_tip_json;  ///< likewise
  std::vector<int64_t> ranks, steps;
  std::string target, golden;  ///< paths of the dumps; "" where the file does not say
};

Overflow OverflowOf(std::string_view text);

/// What a node's own row holds.
struct NodeRecord {
  std::vector<ViewRow> inputs, outputs;
  std::vector<std::string> stack, merge_info;
  std::string communication_json;  ///< "" when the node talks to no other rank
};

}  // namespace msprobe::view
