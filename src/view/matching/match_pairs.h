// Which nodes a match or its cancelling is about: the two that were named, their twins of the other direction, and the
// nodes below them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "view/file/graph_sides.h"

namespace msprobe::view {

struct NodePair {
  uint32_t target = kNoNode, golden = kNoNode;
};

/// "Module.fc.Linear.backward.0" of "Module.fc.Linear.forward.0" and the other way round; "" of a name without
/// direction.
std::string TwinName(std::string_view name);

/// The pair itself first. Of the others only nodes of one type that have no partner yet; children are paired by the
/// name of their module or call, in order.
std::vector<NodePair> PairsToMatch(const GraphSides& graph, NodePair pair, bool descendants);

/// NPU nodes that lose their partners: `node` first.
std::vector<uint32_t> NodesToCancel(const GraphSides& graph, uint32_t node, bool descendants);

}  // namespace msprobe::view
