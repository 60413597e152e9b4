#include "parallel/merge_pool.h"

#include <algorithm>

#include "base/text.h"

namespace msprobe {

bool IsForward(std::string_view name) { return Contains(name, ".forward."); }

bool IsUnmerged(std::string_view name) { return name == "clip_grad" || name == "optimizer"; }

MergePool::MergePool(const MergeUnit& unit, const ParallelLayout& settings,
                     std::vector<std::unique_ptr<RankGraph>> graphs, MergeDecisions* decisions)
    : graphs_(std::move(graphs)), cells_(unit.stages[0].size()), settings_(settings), decisions_(decisions) {
  shares_apart_ = !unit.shares.empty();
  share_count_ = static_cast<size_t>(std::max(unit.share_count, settings.ep));
  const size_t grid = std::max<size_t>(cells_ / share_count_, 1);
  for (size_t cell = 0; cell < cells_; ++cell)
    shares_.push_back(shares_apart_ ? static_cast<size_t>(unit.shares[cell]) : cell / grid);
  size_t count = 0;
  for (const auto& g : graphs_) count += g->graph.nodes.size();
  nodes_.reserve(count + count / 16);
  for (const auto& stage : unit.stages) numbers_.insert(numbers_.end(), stage.begin(), stage.end());
  for (uint32_t r = 0; r < graphs_.size(); ++r) {
    const auto base = static_cast<uint32_t>(nodes_.size());
    base_.push_back(base);
    for (const Node& n : graphs_[r]->graph.nodes) {
      PoolNode p;
      p.name = p.was = n.name;
      p.type = n.type;
      p.rank = r;
      p.parent = n.parent == kNoIndex ? kNoIndex : base + n.parent;
      p.op = n.op;
      p.stack = n.stack;
      p.micro_step = n.micro_step;
      p.children.reserve(n.children.size());
      for (uint32_t c : n.children) p.children.push_back(base + c);
      nodes_.push_back(std::move(p));
    }
  }
}

uint32_t MergePool::Find(size_t rank, std::string_view name) const {
  const uint32_t at = graphs_[rank]->graph.Find(name);
  return at == kNoIndex ? kNoIndex : base_[rank] + at;
}

uint32_t MergePool::PeerOf(uint32_t node, uint32_t rank) const {
  const auto it = peers_.find(uint64_t{node} << 32 | rank);
  return it == peers_.end() ? Find(rank, nodes_[node].was) : it->second;
}

std::string_view MergePool::Keep(std::string text) {
  names_.push_back(std::move(text));
  return names_.back();
}

uint32_t MergePool::AddCollection(std::string name, uint32_t parent) {
  PoolNode node;
  node.name = node.was = Keep(std::move(name));
  node.type = NodeType::kCollection;
  node.parent = parent;
  nodes_.push_back(std::move(node));
  return static_cast<uint32_t>(nodes_.size() - 1);
}

Status MergePool::ReadOp(uint32_t node, JsonDoc* doc) const {
  const PoolNode& n = nodes_[node];
  if (n.op == kNoIndex) {
    doc->SetNull();
    return OkStatus();
  }
  return graphs_[n.rank]->files.dump.ParseOp(n.op, doc);
}

void MergePool::RenameCall(uint32_t node) {
  PoolNode& n = nodes_[node];
  if (n.name != n.was) return;
  const size_t first = n.name.find('.');
  if (first == std::string_view::npos) return;
  const size_t second = std::min(n.name.find('.', first + 1), n.name.size());
  n.name = Keep(std::string(n.name.substr(0, second)) + "_rank" + std::to_string(numbers_[n.rank]) +
                std::string(n.name.substr(second)));
}

void MergePool::Rename(uint32_t top, std::string_view prefix, std::string_view to) {
  std::vector<uint32_t> stack{top};
  while (!stack.empty()) {
    const uint32_t at = stack.back();
    stack.pop_back();
    PoolNode& n = nodes_[at];
    if (n.type != NodeType::kModule) {
      if (n.rank != 0) RenameCall(at);
    } else if (!prefix.empty() && StartsWith(n.name, prefix)) {
      n.name = Keep(std::string(to) + std::string(n.name.substr(prefix.size())));
    }
    stack.insert(stack.end(), n.children.begin(), n.children.end());
  }
}

void MergePool::NoteMove(uint32_t node) {
  const PoolNode& n = nodes_[node];
  decisions_->moved.push_back(
      {numbers_[n.rank], std::string(n.was), std::string(n.name), std::string(nodes_[n.parent].name)});
}

void MergePool::NoteTake(uint32_t node, bool output, uint32_t from) {
  decisions_->taken.push_back(
      {std::string(nodes_[node].name), output, numbers_[nodes_[from].rank], std::string(nodes_[from].was)});
}

}  // namespace msprobe
