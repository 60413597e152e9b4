#include "view/tree.h"

#include <bit>
#include <functional>

namespace msprobe::view {
namespace {

constexpr uint32_t kMaxNodes = 1u << 24;
constexpr size_t kMaxNameBytes = 64 << 10;
constexpr std::string_view kRootName = "DefaultModel";

}  // namespace

Status Tree::Add(TreeNode node, std::string_view name, std::string_view parent_name) {
  if (nodes_.size() >= kMaxNodes) return BadInput("has more than 16 million nodes in one rank: split the dump by step");
  if (name.size() > kMaxNameBytes || parent_name.size() > kMaxNameBytes) {
    return BadInput("holds a node name longer than 64 KiB: it was not written by a graph tool");
  }
  node.name_at = names_.size();
  node.name_size = static_cast<uint32_t>(name.size());
  names_ += name;
  nodes_.push_back(node);
  // Siblings mostly stand together: their parent's name is kept once.
  if (!parent_at_.empty()) {
    const auto [at, size] = parent_at_.back();
    if (std::string_view(parent_names_).substr(at, size) == parent_name) {
      parent_at_.emplace_back(at, size);
      return OkStatus();
    }
  }
  parent_at_.emplace_back(parent_names_.size(), static_cast<uint32_t>(parent_name.size()));
  parent_names_ += parent_name;
  return OkStatus();
}

void Tree::Link() {
  names_.shrink_to_fit();
  nodes_.shrink_to_fit();
  slots_.assign(std::bit_ceil(nodes_.size() * 2 + 1), kNoNode);
  const size_t mask = slots_.size() - 1;
  for (uint32_t i = 0; i < size(); ++i) {
    size_t slot = std::hash<std::string_view>{}(Name(i)) & mask;
    // Of two nodes with one name (no tool writes that) the first one is found by it.
    while (slots_[slot] != kNoNode && Name(slots_[slot]) != Name(i)) slot = (slot + 1) & mask;
    if (slots_[slot] == kNoNode) slots_[slot] = i;
  }
  ResolveParents();
  BreakCycles();
  LinkChildren();
  parent_names_ = {};
  parent_at_ = {};
}

uint32_t Tree::Find(std::string_view name) const {
  if (slots_.empty()) return kNoNode;
  const size_t mask = slots_.size() - 1;
  for (size_t slot = std::hash<std::string_view>{}(name)&mask; slots_[slot] != kNoNode; slot = (slot + 1) & mask) {
    if (Name(slots_[slot]) == name) return slots_[slot];
  }
  return kNoNode;
}

void Tree::ResolveParents() {
  uint32_t last_free = kNoNode;
  for (uint32_t i = 0; i < size(); ++i) {
    const auto [at, length] = parent_at_[i];
    nodes_[i].parent = length == 0 ? kNoNode : Find(std::string_view(parent_names_).substr(at, length));
    if (nodes_[i].parent == kNoNode) last_free = i;
  }
  root_ = Find(kRootName);
  if (root_ == kNoNode) root_ = last_free;
  if (root_ == kNoNode && !nodes_.empty()) root_ = size() - 1;  // nothing but cycles
  if (root_ == kNoNode) return;
  nodes_[root_].parent = kNoNode;
  for (uint32_t i = 0; i < size(); ++i) {
    if (i != root_ && nodes_[i].parent == kNoNode) nodes_[i].parent = root_;
  }
}

void Tree::BreakCycles() {
  // Each walk marks its nodes with its own number; meeting the own number again is a cycle, meeting another one is
  // safe.
  std::vector<uint32_t> walk(nodes_.size(), 0);
  for (uint32_t i = 0; i < size(); ++i) {
    uint32_t at = i;
    while (at != kNoNode && walk[at] == 0) {
      walk[at] = i + 1;
      const uint32_t up = nodes_[at].parent;
      if (up != kNoNode && walk[up] == i + 1) nodes_[at].parent = root_;
      at = nodes_[at].parent;
    }
  }
}

void Tree::LinkChildren() {
  for (uint32_t i = size(); i-- > 0;) {
    const uint32_t up = nodes_[i].parent;
    if (up == kNoNode) continue;
    nodes_[i].next_sibling = nodes_[up].first_child;
    nodes_[up].first_child = i;
    ++nodes_[up].children;
  }
}

void Tree::Count(bool compared) {
  std::vector<uint32_t> open(nodes_.size());
  std::vector<uint32_t> ready;
  for (uint32_t i = 0; i < size(); ++i) {
    TreeNode& n = nodes_[i];
    const bool unmatched = compared && n.partner == kNoNode;
    if (unmatched) n.level = Level::kNone;
    n.counts = {n.level == Level::kError, n.level == Level::kWarning, unmatched, n.overflow != Overflow::kNone};
    open[i] = n.children;
    if (open[i] == 0) ready.push_back(i);
  }
  while (!ready.empty()) {
    const uint32_t i = ready.back();
    ready.pop_back();
    const uint32_t up = nodes_[i].parent;
    if (up == kNoNode) continue;
    const SubtreeCounts& own = nodes_[i].counts;
    SubtreeCounts& sum = nodes_[up].counts;
    sum.error += own.error;
    sum.warning += own.warning;
    sum.unmatched += own.unmatched;
    sum.overflow += own.overflow;
    if (--open[up] == 0) ready.push_back(up);
  }
}

size_t Tree::bytes() const {
  return names_.capacity() + nodes_.capacity() * sizeof(TreeNode) + slots_.capacity() * sizeof(uint32_t);
}

}  // namespace msprobe::view
