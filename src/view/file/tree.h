// The nodes of one side of one rank in memory: names, parents, precision, and counts over every subtree. Built once per
// (file, step, rank); every question of the page but "show me the figures" is answered from here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "compare/round_off/ruler.h"
#include "compare/values/verdict.h"
#include "graph/node/overflow.h"
#include "view/file/node_names.h"

namespace msprobe::view {

inline constexpr uint32_t kNoNode = UINT32_MAX;
/// The types of nodes: 1 is an op.
inline constexpr uint8_t kModule = 0;
/// The type of a collection of calls outside of modules: no op, so no count has it.
inline constexpr uint8_t kCollection = 9;

struct SubtreeCounts {
  uint32_t error = 0, warning = 0, unmatched = 0, overflow = 0;
  uint32_t suspicious = 0, bug = 0;  ///< where a difference begins
};

/// A node as it is asked about; the tree keeps less.
struct TreeNode {
  int64_t rowid = 0;
  int64_t order = 0;
  int64_t micro_step = 0;
  uint32_t parent = kNoNode;
  uint32_t first_child = kNoNode;
  uint32_t next_sibling = kNoNode;
  uint32_t children = 0;
  uint32_t partner = kNoNode;  ///< node of the other side
  SubtreeCounts counts;        ///< over the subtree, the node included
  Verdict level = Verdict::kNone;
  Overflow overflow = Overflow::kNone;
  RulerVerdict ruling = RulerVerdict::kNone;  ///< of a node of the target, where the file judges
  uint8_t type = 0;                           ///< at most 15
};

class Tree {
 public:
  /// Appends a node; execution order. kBadInput when there are more nodes than a graph can have. "" is no partner.
  Status Add(const TreeNode& node, std::string_view name, std::string_view parent_name,
             std::string_view partner_name = {});
  /// Instead: the names by their numbers in the list that Link gets.
  Status AddNumbered(const TreeNode& node, uint32_t name, uint32_t parent_name, uint32_t partner_name);
  void Reserve(size_t nodes) { nodes_.reserve(nodes); }
  /// After the last Add: resolves parents, hangs stray nodes and the nodes of a cycle under the root, links children.
  void Link();
  /// The same after AddNumbered.
  void Link(std::shared_ptr<const NodeNames> names);
  /// After both sides are linked, once: finds the partners by their names.
  void LinkPartners(const Tree& other);
  /// `partner` is a node of the other side; before LinkPartners the number of its name.
  void SetPartner(uint32_t node, uint32_t partner) { nodes_[node].partner = partner; }
  void SetLevel(uint32_t node, Verdict level) { nodes_[node].level = static_cast<uint8_t>(level) & 3; }
  void SetRuling(uint32_t node, RulerVerdict ruling) { nodes_[node].ruling = static_cast<uint8_t>(ruling) & 7; }
  /// After partners are set: counts over every subtree. `compared`: a node without a partner counts as unmatched.
  void Count(bool compared);

  bool empty() const { return nodes_.empty(); }
  uint32_t size() const { return static_cast<uint32_t>(nodes_.size()); }
  uint32_t root() const { return root_; }
  TreeNode operator[](uint32_t i) const {
    const Packed& p = nodes_[i];
    TreeNode n;
    n.rowid = rows_.empty() ? Behind(first_row_, i) : rows_[i];
    n.order = orders_.empty() ? Behind(first_order_, i) : orders_[i];
    n.micro_step = p.micro_step == kOddStep ? odd_steps_.at(i) : p.micro_step;
    n.parent = p.parent;
    n.next_sibling = p.next_sibling;
    n.partner = p.partner;
    n.level = static_cast<Verdict>(p.level);
    n.overflow = static_cast<Overflow>(p.overflow);
    n.ruling = static_cast<RulerVerdict>(p.ruling);
    n.type = p.type;
    if (p.inner == kNoNode) {
      n.counts = OwnCounts(p);
    } else {
      const Inner& inner = inner_[p.inner];
      n.first_child = inner.first_child;
      n.children = inner.children;
      n.counts = inner.counts;
    }
    return n;
  }
  // What is asked of every node of a graph.
  uint32_t Parent(uint32_t i) const { return nodes_[i].parent; }
  bool IsLeaf(uint32_t i) const { return nodes_[i].inner == kNoNode; }
  bool IsMatched(uint32_t i) const { return nodes_[i].partner != kNoNode; }
  Verdict LevelOf(uint32_t i) const { return static_cast<Verdict>(nodes_[i].level); }
  Overflow OverflowAt(uint32_t i) const { return static_cast<Overflow>(nodes_[i].overflow); }
  RulerVerdict RulingOf(uint32_t i) const { return static_cast<RulerVerdict>(nodes_[i].ruling); }
  uint8_t Type(uint32_t i) const { return nodes_[i].type; }
  std::string_view Name(uint32_t i) const { return (*names_)[nodes_[i].name]; }
  /// Of the list of names.
  uint32_t NameNumber(uint32_t i) const { return nodes_[i].name; }
  const std::shared_ptr<const NodeNames>& names() const { return names_; }
  /// The node in this row of the file, in the compact layout, the only one that other tables refer to. kNoNode when
  /// there is no such node.
  uint32_t AtRow(int64_t row) const;
  /// kNoNode when there is no such node.
  uint32_t Find(std::string_view name) const;
  /// Numbers in a file may be any.
  static int64_t Behind(int64_t first, uint64_t i) { return static_cast<int64_t>(static_cast<uint64_t>(first) + i); }
  /// Without names that come from elsewhere.
  size_t bytes() const;

 private:
  struct Packed {
    uint32_t name = 0, parent = kNoNode, next_sibling = kNoNode, partner = kNoNode;
    uint32_t inner = kNoNode;  // what a node with children has besides
    int16_t micro_step = 0;
    uint8_t level : 2 = 0, overflow : 2 = 0, type : 4 = 0;
    uint8_t ruling = 0;
  };
  struct Inner {
    uint32_t first_child = kNoNode, children = 0;
    SubtreeCounts counts;
  };
  static constexpr int16_t kOddStep = INT16_MIN;

  SubtreeCounts OwnCounts(const Packed& p) const {
    if (p.type == kCollection) return {};
    return {p.level == static_cast<uint8_t>(Verdict::kError),
            p.level == static_cast<uint8_t>(Verdict::kWarning),
            compared_ && p.partner == kNoNode,
            p.overflow != 0,
            p.ruling == static_cast<uint8_t>(RulerVerdict::kSuspicious),
            p.ruling == static_cast<uint8_t>(RulerVerdict::kBug)};
  }
  void KeepPlace(const TreeNode& node);
  void ResolveParents();
  void BreakCycles();
  void LinkChildren();

  std::vector<Packed> nodes_;
  std::vector<Inner> inner_;
  std::shared_ptr<NodeNames> own_;  // until Link()
  std::shared_ptr<const NodeNames> names_;
  bool own_names_ = false;
  std::vector<uint32_t> node_of_;       // by number of its name; the first of several
  std::vector<int64_t> rows_, orders_;  // empty where they count up from the first one
  int64_t first_row_ = 0, first_order_ = 0;
  std::unordered_map<uint32_t, int64_t> odd_steps_;  // micro steps that no run has
  uint32_t root_ = kNoNode;
  bool compared_ = false;
};

}  // namespace msprobe::view
