// The nodes of all ranks of a unit in one array, and the operations by which they are moved into one tree.
#pragma once

#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "parallel/merge_data.h"
#include "parallel/merge_decisions.h"
#include "parallel/merge_groups.h"

namespace msprobe {

struct PoolNode {
  std::string_view name, was;  // now, and in its rank
  NodeType type = NodeType::kModule;
  uint32_t rank = 0;  // position in the unit
  uint32_t parent = kNoIndex, op = kNoIndex, stack = kNoIndex;
  uint32_t input = kNoIndex, output = kNoIndex;  // nodes whose data it shows instead
  int32_t micro_step = -1;
  bool force = false, whole_input = false, whole_output = false;
  bool of_expert = false;       // a call that no module tells to be one
  uint32_t reduced = kNoIndex;  // call whose output its own becomes
  std::vector<uint32_t> children;
};

class MergePool {
 public:
  MergePool(const MergeUnit& unit, const ParallelLayout& settings, std::vector<std::unique_ptr<RankGraph>> graphs,
            MergeDecisions* decisions);

  PoolNode& operator[](uint32_t id) { return nodes_[id]; }
  const PoolNode& operator[](uint32_t id) const { return nodes_[id]; }
  uint32_t Root(size_t rank) const { return base_[rank]; }
  size_t RankCount() const { return graphs_.size(); }
  RankGraph& Graph(size_t rank) { return *graphs_[rank]; }
  const RankGraph& Graph(size_t rank) const { return *graphs_[rank]; }
  int RankNumber(uint32_t rank) const { return numbers_[rank]; }
  /// Node of a rank by the name it has there.
  uint32_t Find(size_t rank, std::string_view name) const;
  /// The same call on another rank: that of the same name, where no other is set.
  uint32_t PeerOf(uint32_t node, uint32_t rank) const;
  void SetPeer(uint32_t node, uint32_t rank, uint32_t peer) { peers_[uint64_t{node} << 32 | rank] = peer; }
  bool HasPeer(uint32_t node, uint32_t rank) const { return peers_.contains(uint64_t{node} << 32 | rank); }
  /// Position of the rank in cell `cell` of stage `stage`.
  uint32_t At(size_t stage, size_t cell) const { return static_cast<uint32_t>(stage * cells_ + cell); }
  size_t Stages() const { return graphs_.size() / cells_; }
  size_t Cells() const { return cells_; }
  /// Which share of the experts a cell holds, and the first cell that holds one.
  size_t ShareOf(size_t cell) const { return shares_[cell]; }
  size_t FirstOf(size_t share) const {
    return static_cast<size_t>(std::find(shares_.begin(), shares_.end(), share) - shares_.begin());
  }
  /// Shares lie otherwise than the grid: ranks that hold the same one have other tokens, and no parts of an expert.
  void PlaceShares(std::vector<size_t> of_cells) {
    shares_apart_ = shares_apart_ || of_cells != shares_;
    shares_ = std::move(of_cells);
  }
  size_t Shares() const { return share_count_; }
  bool SharesApart() const { return shares_apart_; }
  const ParallelLayout& settings() const { return settings_; }
  MergeDecisions& decisions() { return *decisions_; }

  std::string_view Keep(std::string text);
  uint32_t AddCollection(std::string name, uint32_t parent);
  Status ReadOp(uint32_t node, JsonDoc* doc) const;

  /// Renames the calls of a subtree after its rank, and the modules whose names begin with `prefix` to `to`.
  void Rename(uint32_t top, std::string_view prefix, std::string_view to);
  /// "Torch.x.0.forward" -> "Torch.x_rank3.0.forward".
  void RenameCall(uint32_t node);
  void NoteMove(uint32_t node);
  void NoteTake(uint32_t node, bool output, uint32_t from);

 private:
  std::vector<PoolNode> nodes_;
  std::vector<uint32_t> base_;
  std::vector<std::unique_ptr<RankGraph>> graphs_;
  std::vector<int> numbers_;
  size_t cells_ = 1;
  std::vector<size_t> shares_;
  size_t share_count_ = 1;
  bool shares_apart_ = false;
  const ParallelLayout& settings_;
  MergeDecisions* decisions_;
  std::deque<std::string> names_;
  std::unordered_map<uint64_t, uint32_t> peers_;  // by node and rank, where calls are counted otherwise

 public:
  std::deque<std::string>& names() { return names_; }
};

bool IsForward(std::string_view name);
bool IsUnmerged(std::string_view name);  // clip_grad, optimizer

/// Joins the stages of a pipeline into the tree of the first: the ranks of one cell of the grid.
Status MergePipeline(MergePool* pool, size_t cell);
/// The same where no modules were recorded (flat_structure.h).
Status MergeCallsOfStages(MergePool* pool, size_t cell);
/// Behind it: the calls of the experts of other ranks among those of the first.
Status MergeCallsOfExperts(MergePool* pool);
/// Joins the chunks "Module.1", "Module.2", ... of a rank into "Module.0".
void MergeChunks(MergePool* pool, uint32_t root);
/// Joins the experts of the other expert parallel ranks into the first's lists of experts.
void MergeExperts(MergePool* pool);
/// Collections of the calls between modules, of all ranks.
void MergeRootCalls(MergePool* pool);
/// Which calls and modules hold partial sums, or parts although their values are equal.
Status MarkTensorParallel(MergePool* pool);

}  // namespace msprobe
