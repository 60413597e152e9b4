// The nodes of one side of one rank in memory: names, parents, precision, and counts over every subtree. Built once per
// (file, step, rank); every question of the page but "show me the figures" is answered from here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace msprobe::view {

enum class Level : uint8_t { kNone, kPass, kWarning, kError };
enum class Overflow : uint8_t { kNone, kMedium, kHigh, kCritical };

inline constexpr uint32_t kNoNode = UINT32_MAX;

struct SubtreeCounts {
  uint32_t error = 0, warning = 0, unmatched = 0, overflow = 0;
};

struct TreeNode {
  uint64_t name_at = 0;
  int64_t rowid = 0;
  int64_t order = 0;
  int64_t micro_step = 0;
  uint32_t name_size = 0;
  uint32_t parent = kNoNode;
  uint32_t first_child = kNoNode;
  uint32_t next_sibling = kNoNode;
  uint32_t children = 0;
  uint32_t partner = kNoNode;  ///< node of the other side
  SubtreeCounts counts;        ///< over the subtree, the node included
  Level level = Level::kNone;
  Overflow overflow = Overflow::kNone;
  uint8_t type = 0;
};

class Tree {
 public:
  /// Appends a node; execution order. kBadInput when there are more nodes than a graph can have.
  Status Add(TreeNode node, std::string_view name, std::string_view parent_name);
  /// After the last Add: resolves parents, hangs stray nodes and the nodes of a cycle under the root, links children.
  void Link();
  /// `partner` is a node of the other side.
  void SetPartner(uint32_t node, uint32_t partner) { nodes_[node].partner = partner; }
  void SetLevel(uint32_t node, Level level) { nodes_[node].level = level; }
  /// After partners are set: counts over every subtree. `compared`: a node without a partner counts as unmatched.
  void Count(bool compared);

  bool empty() const { return nodes_.empty(); }
  uint32_t size() const { return static_cast<uint32_t>(nodes_.size()); }
  uint32_t root() const { return root_; }
  const TreeNode& operator[](uint32_t i) const { return nodes_[i]; }
  std::string_view Name(uint32_t i) const { return {names_.data() + nodes_[i].name_at, nodes_[i].name_size}; }
  /// kNoNode when there is no such node.
  uint32_t Find(std::string_view name) const;
  size_t bytes() const;

 private:
  void ResolveParents();
  void BreakCycles();
  void LinkChildren();

  std::string names_;
  std::vector<TreeNode> nodes_;
  std::vector<uint32_t> slots_;  // open addressing over names
  std::string parent_names_;     // until Link()
  std::vector<std::pair<uint64_t, uint32_t>> parent_at_;
  uint32_t root_ = kNoNode;
};

}  // namespace msprobe::view
