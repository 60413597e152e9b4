#include "parallel/merge_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_set>

#include "base/interrupt.h"
#include "base/message.h"
#include "base/text.h"
#include "graph/tree/flat_structure.h"
#include "ops/collective.h"
#include "parallel/expert_shares.h"
#include "parallel/layer_number.h"
#include "parallel/merge_pool.h"

namespace msprobe {
namespace {

constexpr std::string_view kAllRanks = "Apis_Between_Modules_All_Ranks.";

std::string CollectionOfRank(int rank, std::string_view number) {
  return fmt::format("{}_Rank{}.{}", kCollectionName, rank, number);
}

std::string_view LastSegment(std::string_view name) { return name.substr(name.rfind('.') + 1); }

/// Collections of the calls between modules: one for all ranks, in it one per rank.
class RootCalls {
 public:
  explicit RootCalls(MergePool* pool) : pool_(*pool) {
    for (uint32_t r = 0; r < pool_.RankCount(); ++r) by_number_.push_back(r);
    std::sort(by_number_.begin(), by_number_.end(),
              [&](uint32_t a, uint32_t b) { return pool_.RankNumber(a) < pool_.RankNumber(b); });
  }

  void Run() {
    const uint32_t root = pool_.Root(0);
    const std::vector<uint32_t> top = pool_[root].children;
    std::vector<uint32_t> children;
    for (uint32_t c : top) children.push_back(pool_[c].type == NodeType::kCollection ? Wrap(c) : c);
    // What other ranks call where the first has no collection would get lost.
    for (uint32_t r : by_number_) {
      if (r != 0) Rest(r, &children);
    }
    pool_[root].children = std::move(children);
  }

 private:
  uint32_t AddAll() { return pool_.AddCollection(std::string(kAllRanks) + std::to_string(count_++), pool_.Root(0)); }

  uint32_t Wrap(uint32_t own) {
    const std::string_view was = pool_[own].was;
    const uint32_t all = AddAll();
    pool_[all].micro_step = pool_[own].micro_step;
    for (uint32_t r : by_number_) {
      const uint32_t c = r == 0 ? own : pool_.Find(r, was);
      if (c == kNoIndex || pool_[c].type != NodeType::kCollection) continue;
      if (r != 0) {
        for (uint32_t call : pool_[c].children) pool_.RenameCall(call);
      }
      pool_[c].name = pool_.Keep(CollectionOfRank(pool_.RankNumber(r), LastSegment(was)));
      pool_[c].parent = all;
      pool_[all].children.push_back(c);
      used_.insert(c);
    }
    return all;
  }

  void Rest(uint32_t rank, std::vector<uint32_t>* children) {
    std::vector<uint32_t> collections, single;
    for (uint32_t c : pool_[pool_.Root(rank)].children) {
      if (pool_[c].type == NodeType::kCollection && !used_.contains(c)) collections.push_back(c);
      if (pool_[c].type == NodeType::kApi) single.push_back(c);
    }
    if (collections.empty() && single.empty()) return;
    const uint32_t all = AddAll();
    for (uint32_t c : collections) {
      for (uint32_t call : pool_[c].children) pool_.RenameCall(call);
      pool_[c].name = pool_.Keep(CollectionOfRank(pool_.RankNumber(rank), LastSegment(pool_[c].was)));
      pool_[c].parent = all;
      pool_[all].children.push_back(c);
    }
    if (!single.empty()) {
      const uint32_t own = pool_.AddCollection(CollectionOfRank(pool_.RankNumber(rank), "single"), all);
      for (uint32_t call : single) {
        pool_.RenameCall(call);
        pool_[call].parent = own;
      }
      pool_[own].children = std::move(single);
      pool_[all].children.push_back(own);
    }
    children->push_back(all);
  }

  MergePool& pool_;
  std::vector<uint32_t> by_number_;
  std::unordered_set<uint32_t> used_;
  size_t count_ = 0;
};

/// Builds the graph and where its data comes from out of the finished tree.
class Finisher {
 public:
  Finisher(MergePool* pool, const ParallelLayout& settings) : pool_(*pool), settings_(settings) {}

  StatusOr<RankGraph> Run(MergeLayout layout) {
    auto data = std::make_shared<MergedData>();
    data->layout = std::move(layout);
    RankGraph& first = pool_.Graph(0);
    RankGraph out{std::move(first.files), NodeGraph(), {}, 0, nullptr};
    for (uint32_t r = 0; r < pool_.RankCount(); ++r) {
      data->ranks.push_back(pool_.RankNumber(r));
      out.orphans += pool_.Graph(r).orphans;
    }
    data->sources.emplace_back();  // of the root
    std::vector<std::pair<uint32_t, uint32_t>> stack{{pool_.Root(0), 0}};
    while (!stack.empty()) {
      const auto [from, to] = stack.back();
      stack.pop_back();
      for (uint32_t c : pool_[from].children) {
        if (out.graph.Find(pool_[c].name) != kNoIndex) pool_.RenameCall(c);
        if (out.graph.Find(pool_[c].name) != kNoIndex) {
          return BadInput(Msg("{}: merging its ranks gives two nodes the name {}: check tp, pp, vpp and --order",
                              out.files.dir, OneLine(pool_[c].name)));
        }
        const uint32_t id = out.graph.Add(pool_[c].name, pool_[c].type);
        Node& node = out.graph.nodes[id];
        node.micro_step = pool_[c].micro_step;
        node.op = pool_[c].op;
        node.stack = StackOf(c, out, data.get());
        out.graph.SetParent(id, to);
        data->sources.push_back(SourceOf(c, to != 0 && IsUnmerged(pool_[from].name), pool_[from].type));
        if (pool_[c].op != kNoIndex && IsCommunication(pool_[c].name)) calls_.emplace_back(c, id);
        stack.emplace_back(c, id);
      }
    }
    NoteCalls(data.get());
    out.graph.Sort();
    out.graph.own_names = std::move(pool_.names());
    for (uint32_t r = 0; r < pool_.RankCount(); ++r) {
      if (r > 0) data->files.push_back(std::move(pool_.Graph(r).files));
    }
    out.merged = std::move(data);
    return out;
  }

 private:
  /// A call that stands for those of the other ranks of its grid, where these are not in the tree themselves.
  void NoteCalls(MergedData* data) const {
    data->calls.resize(pool_.RankCount());
    for (const auto& [own, id] : calls_) data->calls[pool_[own].rank].emplace(pool_[own].op, id);
    for (const auto& [own, id] : calls_) {
      const size_t stage = pool_[own].rank / pool_.Cells();
      for (size_t cell = 0; cell < pool_.Cells(); ++cell) {
        const uint32_t rank = pool_.At(stage, cell);
        const uint32_t peer = rank == pool_[own].rank ? kNoIndex : pool_.PeerOf(own, rank);
        if (peer == kNoIndex || pool_[peer].op == kNoIndex || !IsSameCall(own, peer)) continue;
        data->calls[rank].emplace(pool_[peer].op, id);  // the own node of a call that has one stays
      }
    }
  }

  const RankFiles& Files(const RankGraph& out, uint32_t rank) {
    return rank == 0 ? out.files : pool_.Graph(rank).files;
  }

  // Ranks record the same stack; one copy is kept.
  uint32_t StackOf(uint32_t node, const RankGraph& out, MergedData* data) {
    const PoolNode& n = pool_[node];
    if (n.stack == kNoIndex || n.stack == kLostStack) return n.stack;
    const uint64_t key = (uint64_t{n.rank} << 32) | n.stack;
    if (const auto it = stack_of_.find(key); it != stack_of_.end()) return it->second;
    const std::vector<std::string>& frames = Files(out, n.rank).stack.Frames(n.stack);
    std::string text;
    for (const std::string& f : frames) text += f, text += '\0';
    const auto [it, fresh] = stacks_.try_emplace(std::move(text), static_cast<uint32_t>(data->stacks.size()));
    if (fresh) data->stacks.push_back(frames);
    stack_of_.emplace(key, it->second);
    return it->second;
  }

  bool IsSameCall(uint32_t node, uint32_t peer) const {
    return pool_.HasPeer(node, pool_[peer].rank) || SamePath(node, peer);
  }

  bool SamePath(uint32_t a, uint32_t b) const {
    for (;;) {
      if (pool_[a].was != pool_[b].was) return false;
      a = Original(a), b = Original(b);
      if (a == kNoIndex || b == kNoIndex) return a == b;
    }
  }
  // Parent as its rank has it.
  uint32_t Original(uint32_t node) const {
    const PoolNode& n = pool_[node];
    const NodeGraph& graph = pool_.Graph(n.rank).graph;
    const uint32_t up = graph.nodes[node - pool_.Root(n.rank)].parent;
    return up == kNoIndex ? kNoIndex : pool_.Root(n.rank) + up;
  }

  bool IsOfExpert(uint32_t node) const {
    if (pool_[node].of_expert) return true;
    LayerNumber number;
    for (uint32_t at = node; at != kNoIndex; at = pool_[at].parent)
      if (FindExpertNumber(pool_[at].name, "", &number)) return true;
    return false;
  }

  // The same op on all ranks of the grid; only the own one where some rank lacks it.
  std::vector<OpRef> CellsOf(uint32_t node, bool of_expert) const {
    const PoolNode& n = pool_[node];
    const size_t stage = n.rank / pool_.Cells(), own = n.rank % pool_.Cells();
    std::vector<OpRef> out;
    for (size_t cell = 0; cell < pool_.Cells(); ++cell) {
      if (of_expert && pool_.ShareOf(cell) != pool_.ShareOf(own)) continue;
      const uint32_t rank = pool_.At(stage, cell);
      const uint32_t peer = rank == n.rank ? node : pool_.PeerOf(node, rank);
      if (peer == kNoIndex || pool_[peer].op == kNoIndex || !IsSameCall(node, peer)) return {{n.rank, n.op}};
      out.push_back({rank, pool_[peer].op});
    }
    return out;
  }

  /// The same call on the other ranks of the unit, by its name there.
  void AddPeers(uint32_t node, MergeSource* out) const {
    const PoolNode& n = pool_[node];
    if (pool_.RankCount() < 2) return;
    out->peers = {{n.rank, n.op}};
    const size_t stage = n.rank / pool_.Cells();
    for (const bool near : {true, false}) {
      for (uint32_t rank = 0; rank < pool_.RankCount(); ++rank) {
        if (rank == n.rank || (rank / pool_.Cells() == stage) != near) continue;
        const uint32_t peer = pool_.PeerOf(node, rank);
        if (peer != kNoIndex && pool_[peer].op != kNoIndex) out->peers.push_back({rank, pool_[peer].op});
      }
      if (near) out->near_peers = out->peers.size();
    }
  }

  /// The same call for the experts of other ranks: some of what a rank does for its experts is one call on one rank.
  void AddShares(uint32_t node, MergeSource* out) const {
    const PoolNode& n = pool_[node];
    const size_t stage = n.rank / pool_.Cells(), own = pool_.ShareOf(n.rank % pool_.Cells());
    for (size_t share = 0; share < pool_.Shares(); ++share) {
      if (share == own) continue;
      const uint32_t rank = pool_.At(stage, pool_.FirstOf(share));
      const uint32_t peer = pool_.PeerOf(node, rank);
      if (peer != kNoIndex && pool_[peer].op != kNoIndex && pool_[peer].of_expert)
        out->shares.push_back({rank, pool_[peer].op});
    }
  }

  MergeSource SourceOf(uint32_t node, bool unmerged, NodeType parent) const {
    const PoolNode& n = pool_[node];
    MergeSource out;
    if (n.op == kNoIndex) return out;
    if (unmerged || parent != NodeType::kModule || IsCommunication(n.name)) {
      out.cells = {{n.rank, n.op}};
      AddPeers(node, &out);
      return out;
    }
    const bool of_expert = pool_.Shares() > 1 && IsOfExpert(node);
    out.of_expert = n.of_expert;
    if (n.of_expert) AddShares(node, &out);
    out.cells = CellsOf(node, of_expert);
    if (n.input != kNoIndex) out.input = CellsOf(n.input, of_expert);
    if (n.output != kNoIndex) out.output = CellsOf(n.output, of_expert);
    if (n.reduced != kNoIndex) {
      out.reduced = CellsOf(n.reduced, of_expert);
      out.reduced_name = pool_[n.reduced].name;
    }
    size_t fewest = out.cells.size();
    for (const auto* refs : {&out.input, &out.output, &out.reduced})
      if (!refs->empty()) fewest = std::min(fewest, refs->size());
    for (auto* refs : {&out.cells, &out.input, &out.output, &out.reduced})
      if (!refs->empty()) refs->resize(fewest);
    if (fewest > 1 && of_expert && pool_.SharesApart()) {
      out.grid.ep = static_cast<uint16_t>(fewest);
    } else if (fewest > 1) {
      out.grid.tp = static_cast<uint16_t>(settings_.tp);
      out.grid.cp = static_cast<uint16_t>(settings_.cp);
      out.grid.ep = static_cast<uint16_t>(of_expert ? 1 : settings_.ep);
    }
    out.force = n.force;
    out.whole_input = n.whole_input;
    out.whole_output = n.whole_output;
    return out;
  }

  MergePool& pool_;
  const ParallelLayout& settings_;
  std::vector<std::pair<uint32_t, uint32_t>> calls_;  // communication: of the pool, of the graph
  std::unordered_map<uint64_t, uint32_t> stack_of_;
  std::unordered_map<std::string, uint32_t> stacks_;
};

}  // namespace

void MergeRootCalls(MergePool* pool) { RootCalls(pool).Run(); }

StatusOr<RankGraph> MergeRanks(const ParallelLayout& settings, const MergeUnit& unit, MergeLayout layout,
                               std::vector<std::unique_ptr<RankGraph>> graphs, MergeDecisions* decisions) {
  MergePool pool(unit, settings, std::move(graphs), decisions);
  if (IsOneModuleOfCalls(pool.Graph(0).files.construct)) {
    MSP_RETURN_IF_ERROR(MergeCallsOfStages(&pool, 0));
    MSP_RETURN_IF_ERROR(MergeCallsOfExperts(&pool));
    if (InterruptRequested()) return Interrupted();
    MergeRootCalls(&pool);
    return Finisher(&pool, settings).Run(std::move(layout));
  }
  MSP_RETURN_IF_ERROR(CheckExpertParts(pool));
  MSP_RETURN_IF_ERROR(PlaceSharesByWeights(&pool));
  MergeExperts(&pool);
  MSP_RETURN_IF_ERROR(MergePipeline(&pool, 0));
  if (InterruptRequested()) return Interrupted();
  MergeChunks(&pool, pool.Root(0));
  MergeRootCalls(&pool);
  MSP_RETURN_IF_ERROR(MarkTensorParallel(&pool));
  if (InterruptRequested()) return Interrupted();
  return Finisher(&pool, settings).Run(std::move(layout));
}

}  // namespace msprobe
