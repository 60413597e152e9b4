#include "view/file/tree.h"

#include <utility>

#include "base/message.h"

namespace msprobe::view {
namespace {

constexpr uint32_t kMaxNodes = 1u << 24;
constexpr std::string_view kRootName = "DefaultModel";

// Kept as a list from the first value on that does not follow the one before.
void KeepValue(int64_t value, size_t at, int64_t* first, std::vector<int64_t>* list) {
  if (at == 0) *first = value;
  if (list->empty() && value == Tree::Behind(*first, at)) return;
  while (list->size() < at) list->push_back(Tree::Behind(*first, list->size()));
  list->push_back(value);
}

}  // namespace

Status Tree::AddNumbered(const TreeNode& node, uint32_t name, uint32_t parent_name, uint32_t partner_name) {
  if (nodes_.size() >= kMaxNodes)
    return BadInput(Msg("has more than 16 million nodes in one rank: split the dump by step"));
  KeepPlace(node);
  Packed p;
  p.name = name;
  p.parent = parent_name;
  p.partner = partner_name;
  p.level = static_cast<uint8_t>(node.level) & 3;
  p.overflow = static_cast<uint8_t>(node.overflow) & 3;
  p.type = node.type & 15;
  p.ruling = static_cast<uint8_t>(node.ruling) & 7;
  if (node.micro_step > kOddStep && node.micro_step <= INT16_MAX) {
    p.micro_step = static_cast<int16_t>(node.micro_step);
  } else {
    p.micro_step = kOddStep;
    odd_steps_.emplace(size(), node.micro_step);
  }
  nodes_.push_back(p);
  return OkStatus();
}

void Tree::KeepPlace(const TreeNode& node) {
  KeepValue(node.rowid, nodes_.size(), &first_row_, &rows_);
  KeepValue(node.order, nodes_.size(), &first_order_, &orders_);
}

Status Tree::Add(const TreeNode& node, std::string_view name, std::string_view parent_name,
                 std::string_view partner_name) {
  if (!own_) own_ = std::make_shared<NodeNames>();
  MSP_ASSIGN_OR_RETURN(const uint32_t number, own_->Intern(name));
  uint32_t parent = kNoNode, partner = kNoNode;
  if (!parent_name.empty()) {
    MSP_ASSIGN_OR_RETURN(parent, own_->Intern(parent_name));
  }
  if (!partner_name.empty()) {
    MSP_ASSIGN_OR_RETURN(partner, own_->Intern(partner_name));
  }
  return AddNumbered(node, number, parent, partner);
}

void Tree::Link() {
  own_names_ = true;
  Link(own_ ? std::exchange(own_, nullptr) : std::make_shared<NodeNames>());
}

void Tree::Link(std::shared_ptr<const NodeNames> names) {
  names_ = std::move(names);
  nodes_.shrink_to_fit();
  node_of_.assign(names_->size(), kNoNode);
  for (uint32_t i = size(); i-- > 0;) node_of_[nodes_[i].name] = i;
  ResolveParents();
  BreakCycles();
  LinkChildren();
}

void Tree::LinkPartners(const Tree& other) {
  const bool same_list = names_ == other.names_;
  for (Packed& p : nodes_) {
    if (p.partner != kNoNode) p.partner = same_list ? other.node_of_[p.partner] : other.Find((*names_)[p.partner]);
  }
}

uint32_t Tree::Find(std::string_view name) const {
  if (!names_) return kNoNode;
  const uint32_t number = names_->Find(name);
  return number == NodeNames::kNone ? kNoNode : node_of_[number];
}

uint32_t Tree::AtRow(int64_t row) const {
  if (rows_.empty()) {
    return !nodes_.empty() && row >= first_row_ && row - first_row_ < size() ? static_cast<uint32_t>(row - first_row_)
                                                                             : kNoNode;
  }
  // Rows of a graph stand together; where they do not, nothing refers to them.
  const int64_t first = rows_[0];
  if (row < first || row - first >= size()) return kNoNode;
  const auto i = static_cast<uint32_t>(row - first);
  return (i < rows_.size() ? rows_[i] : Behind(first_row_, i)) == row ? i : kNoNode;
}

void Tree::ResolveParents() {
  uint32_t last_free = kNoNode;
  const uint32_t no_name = names_->Find("");
  for (uint32_t i = 0; i < size(); ++i) {
    uint32_t& parent = nodes_[i].parent;
    parent = parent == kNoNode || parent == no_name ? kNoNode : node_of_[parent];
    if (parent == kNoNode) last_free = i;
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
  uint32_t inner = 0;
  for (uint32_t i = 0; i < size(); ++i) {
    const uint32_t up = nodes_[i].parent;
    if (up != kNoNode && nodes_[up].inner == kNoNode) nodes_[up].inner = inner++;
  }
  inner_.resize(inner);
  for (uint32_t i = size(); i-- > 0;) {
    const uint32_t up = nodes_[i].parent;
    if (up == kNoNode) continue;
    Inner& into = inner_[nodes_[up].inner];
    nodes_[i].next_sibling = into.first_child;
    into.first_child = i;
    ++into.children;
  }
}

void Tree::Count(bool compared) {
  compared_ = compared;
  std::vector<uint32_t> open(inner_.size());
  for (Packed& p : nodes_) {
    if (compared && p.partner == kNoNode) p.level = static_cast<uint8_t>(Verdict::kNone);
    if (p.inner == kNoNode) continue;
    inner_[p.inner].counts = OwnCounts(p);
    open[p.inner] = inner_[p.inner].children;
  }
  // From each leaf up, as far as everything below is counted.
  for (const Packed& leaf : nodes_) {
    if (leaf.inner != kNoNode) continue;
    SubtreeCounts own = OwnCounts(leaf);
    for (uint32_t up = leaf.parent; up != kNoNode; up = nodes_[up].parent) {
      const uint32_t inner = nodes_[up].inner;
      SubtreeCounts& sum = inner_[inner].counts;
      sum.error += own.error;
      sum.warning += own.warning;
      sum.unmatched += own.unmatched;
      sum.overflow += own.overflow;
      sum.suspicious += own.suspicious;
      sum.bug += own.bug;
      if (--open[inner] != 0) break;
      own = sum;
    }
  }
}

size_t Tree::bytes() const {
  return nodes_.capacity() * sizeof(Packed) + inner_.capacity() * sizeof(Inner) +
         node_of_.capacity() * sizeof(uint32_t) + (rows_.capacity() + orders_.capacity()) * sizeof(int64_t) +
         (own_names_ ? names_->bytes() : 0);
}

}  // namespace msprobe::view
