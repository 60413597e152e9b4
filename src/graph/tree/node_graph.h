// The graph of one rank: modules and the calls inside them, as a tree in order of execution.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "base/slot_table.h"

namespace msprobe {

/// The number is what `.vis.db` stores.
enum class NodeType : uint8_t { kModule = 0, kApi = 1, kCollection = 9 };

inline constexpr uint32_t kNoIndex = UINT32_MAX;
inline constexpr uint32_t kLostStack = UINT32_MAX - 1;  ///< a backward node whose forward node was not recorded

struct Node {
  std::string_view name;  // points into construct.json, dump.json or NodeGraph::own_names
  NodeType type = NodeType::kModule;
  bool recomputed = false;  // at the top level: a module that runs again during the backward pass
  uint32_t parent = kNoIndex;
  uint32_t op = kNoIndex;     // index of its entry in dump.json
  uint32_t stack = kNoIndex;  // id in stack.json, kLostStack, or kNoIndex for none
  uint32_t match = kNoIndex;  // node of the other side
  int32_t micro_step = -1;    // -1: not known
  std::vector<uint32_t> children;
};

/// Node 0 is the root.
struct NodeGraph {
  std::vector<Node> nodes;
  SlotTable index;  // of the nodes by name; the first of a name counts
  std::deque<std::string> own_names;
  std::vector<uint32_t> order;  // children before parents, root last: the order of collection

  NodeGraph();
  uint32_t Find(std::string_view name) const;
  /// Adds a node without a parent; `name` must outlive the graph.
  uint32_t Add(std::string_view name, NodeType type);
  /// Same, with a name that the graph keeps itself.
  uint32_t AddOwned(std::string name, NodeType type);
  void SetParent(uint32_t child, uint32_t parent);
  /// Names from the root down to `node`, both included.
  std::vector<uint32_t> PathTo(uint32_t node) const;
  /// Fills `order` with every node that can be reached from the root.
  void Sort();
};

inline constexpr std::string_view kRootName = "DefaultModel";
inline constexpr std::string_view kCollectionName = "Apis_Between_Modules";

NodeType TypeOfName(std::string_view name);
/// "x.backward.3" with direction "backward" -> prefix "x", number "3".
bool SplitCall(std::string_view name, std::string_view direction, std::string_view* prefix, std::string_view* number);
std::vector<std::string_view> Segments(std::string_view name);
/// Segment `i` counted from the front; empty when there are fewer.
std::string_view Segment(std::string_view name, size_t i);
std::string ReplaceAll(std::string_view text, std::string_view from, std::string_view to);

}  // namespace msprobe
