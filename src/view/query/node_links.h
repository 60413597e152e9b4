// What a node has to do with others: the ops before and after it, where its values come from and go to, who it talks to
// on other ranks, and how far it is off. From the tables named msprobe_*; a file without them has the order only.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "graph/flow/flow.h"
#include "view/file/graph_sides.h"
#include "view/file/vis_file.h"
#include "view/query/answers.h"

namespace msprobe::view {

struct NodeLinks {
  uint32_t previous = kNoNode, next = kNoNode;  ///< ops, in the order in which they ran
  bool flow_known = false;
  std::vector<FlowEdge> producers, consumers;  ///< at most kMostEdges each; nodes are places in the tree
  uint64_t producers_total = 0, consumers_total = 0;
  std::vector<ExchangePartner> partners;
  std::optional<NodePrecision> precision;

  static constexpr size_t kMostEdges = 200;
  static constexpr size_t kMostPartners = 2000;
};

/// Calls `take` with every edge of the graph whose taker is in the rows of `from_row` or behind them; nodes are places
/// in the tree. Returns false when the file does not have them.
StatusOr<bool> ReadFlow(const VisFile& file, const Tree& tree, uint32_t from,
                        const std::function<void(const FlowEdge&)>& take);

/// Partners and precision only.
Status LoadMeasured(const VisFile& file, const Tree& tree, uint32_t node, NodeLinks* out);

StatusOr<NodeLinks> LoadLinks(const VisFile& file, const GraphSides& graph, bool target, uint32_t node);

}  // namespace msprobe::view
