// Layers that are spread over ranks: stages of a pipeline, virtual chunks of a stage, experts.
#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <unordered_set>

#include "base/text.h"
#include "parallel/layer_number.h"
#include "parallel/merge_pool.h"

namespace msprobe {
namespace {

/// One move into the tree of the first stage.
struct Moved {
  uint32_t node = 0;
  uint32_t position = 0;  // among the children it came from
};

class PipelineMerger {
 public:
  PipelineMerger(MergePool* pool, size_t cell) : pool_(*pool) {
    for (size_t stage = 0; stage < pool_.Stages(); ++stage) ranks_.push_back(pool_.At(stage, cell));
  }

  Status Run() {
    const uint32_t root = pool_.Root(ranks_[0]);
    const std::vector<uint32_t> top = pool_[root].children;
    for (uint32_t child : top) {
      if (pool_[child].type != NodeType::kModule || IsUnmerged(pool_[child].name)) continue;
      MSP_RETURN_IF_ERROR(Visit(child).status());
    }
    CollectUnique(root, OtherRoots(), /*modules_only=*/true);
    for (auto& [parent, moved] : moved_) Place(parent, &moved);
    return OkStatus();
  }

 private:
  std::vector<uint32_t> OtherRoots() const {
    std::vector<uint32_t> out;
    for (size_t i = 1; i < ranks_.size(); ++i) out.push_back(pool_.Root(ranks_[i]));
    return out;
  }

  StatusOr<OpDifference> Differ(uint32_t node, const std::vector<uint32_t>& others) {
    OpDifference out;
    MSP_RETURN_IF_ERROR(pool_.ReadOp(node, &doc_));
    for (uint32_t other : others) {
      MSP_RETURN_IF_ERROR(pool_.ReadOp(other, &other_));
      if (!doc_.IsObject() || !other_.IsObject()) continue;
      const OpDifference one = CompareOps(pool_[node].was, doc_, other_);
      out.input |= one.input;
      out.output |= one.output;
    }
    return out;
  }

  bool HasStatistics() const { return pool_.Graph(0).files.dump.task() != "structure"; }

  // True when something was moved into the subtree, or beside the node.
  StatusOr<bool> Visit(uint32_t at) {
    std::vector<uint32_t> others;
    for (size_t i = 1; i < ranks_.size(); ++i) {
      const uint32_t other = pool_.Find(ranks_[i], pool_[at].was);
      if (other != kNoIndex && !gone_.contains(other)) others.push_back(other);
    }
    if (others.empty()) return false;
    MSP_ASSIGN_OR_RETURN(const OpDifference differ, Differ(at, others));
    const std::string_view name = pool_[at].name;
    const bool forward = IsForward(name), backward = Contains(name, ".backward.");
    LayerNumber number;
    const bool layer = FindLayerNumber(name, pool_[pool_[at].parent].name, &number);
    const bool other_layer = layer && ((differ.input && differ.output) || !HasStatistics());
    if (other_layer || (backward && layers_.contains(ReplaceAll(name, ".backward.", ".forward.")))) {
      layers_.insert(std::string(name));
      for (uint32_t other : others) Take(other, pool_[at].parent);
      return true;
    }
    bool moved = CollectUnique(at, others, /*modules_only=*/false);
    const std::vector<uint32_t> children = pool_[at].children;
    for (uint32_t child : children) {
      if (pool_[child].type != NodeType::kModule) continue;
      MSP_ASSIGN_OR_RETURN(const bool below, Visit(child));
      moved |= below;
    }
    // What goes through a pipeline enters at its first stage and leaves at its last.
    const bool ends = moved && differ.input && differ.output;
    if (forward && ((!differ.input && differ.output) || ends)) {
      pool_[at].output = others.back();
      pool_.NoteTake(at, true, others.back());
    } else if (backward && ((differ.input && !differ.output) || ends)) {
      pool_[at].input = others.back();
      pool_.NoteTake(at, false, others.back());
    }
    return moved;
  }

  void Take(uint32_t node, uint32_t parent) {
    const auto& from = pool_[pool_[node].parent].children;
    const auto position = static_cast<uint32_t>(std::find(from.begin(), from.end(), node) - from.begin());
    moved_[parent].push_back({node, position});
    gone_.insert(node);
  }

  // Children that the first stage lacks.
  bool CollectUnique(uint32_t at, const std::vector<uint32_t>& others, bool modules_only) {
    std::unordered_set<std::string_view> known;
    for (uint32_t c : pool_[at].children) known.insert(pool_[c].was);
    bool any = false;
    for (uint32_t other : others) {
      const std::vector<uint32_t> children = pool_[other].children;
      for (uint32_t c : children) {
        const PoolNode& child = pool_[c];
        if (known.contains(child.was) || gone_.contains(c) || child.type == NodeType::kCollection) continue;
        if (modules_only && (child.type != NodeType::kModule || IsUnmerged(child.name))) continue;
        Take(c, at);
        any = true;
      }
    }
    return any;
  }

  bool Forward(uint32_t parent, const std::vector<Moved>& moved) const {
    if (pool_[parent].parent != kNoIndex) return IsForward(pool_[parent].name);
    return IsForward(pool_[moved[0].node].name);
  }

  void Place(uint32_t parent, std::vector<Moved>* moved) {
    if (pool_[parent].parent == kNoIndex) return PlaceAtRoot(parent, *moved);
    PlaceRun(parent, moved, pool_[parent].children, IsForward(pool_[parent].name));
    auto& children = pool_[parent].children;
    const auto at = IsForward(pool_[parent].name) ? children.end() : children.begin();
    std::vector<uint32_t> nodes;
    for (const Moved& m : *moved) nodes.push_back(m.node);
    children.insert(at, nodes.begin(), nodes.end());
  }

  // At the top, forward and backward passes of several micro batches follow each other: a moved module goes behind (of
  // a backward pass: before) those of the same pass.
  void PlaceAtRoot(uint32_t root, const std::vector<Moved>& moved) {
    std::map<std::string, std::vector<Moved>> passes;
    std::vector<std::string> order;
    for (const Moved& m : moved) {
      const std::string pass = PassOf(pool_[m.node].name);
      if (!passes.contains(pass)) order.push_back(pass);
      passes[pass].push_back(m);
    }
    for (const std::string& pass : order) {
      std::vector<Moved>& run = passes[pass];
      auto& children = pool_[root].children;
      std::vector<uint32_t> same;
      for (uint32_t c : children)
        if (pool_[c].type == NodeType::kModule && PassOf(pool_[c].name) == pass) same.push_back(c);
      const bool forward = IsForward(pool_[run[0].node].name);
      PlaceRun(root, &run, same, forward);
      auto at = children.end();
      if (!same.empty()) {
        at = std::find(children.begin(), children.end(), forward ? same.back() : same.front());
        if (forward) ++at;
      }
      std::vector<uint32_t> nodes;
      for (const Moved& m : run) nodes.push_back(m.node);
      children.insert(at, nodes.begin(), nodes.end());
    }
  }

  static std::string PassOf(std::string_view name) {
    std::string_view prefix, number;
    if (SplitCall(name, "forward", &prefix, &number)) return "forward." + std::string(number);
    if (SplitCall(name, "backward", &prefix, &number)) return "backward." + std::string(number);
    return "";
  }

  // Sorts the moved nodes and numbers the layers among them behind those of `there`.
  void PlaceRun(uint32_t parent, std::vector<Moved>* moved, const std::vector<uint32_t>& there, bool forward) {
    std::stable_sort(moved->begin(), moved->end(), [&](const Moved& a, const Moved& b) {
      const uint32_t ra = pool_[a.node].rank, rb = pool_[b.node].rank;
      return ra != rb ? (forward ? ra < rb : ra > rb) : a.position < b.position;
    });
    std::map<std::string, int, std::less<>> next;
    const std::string_view up = pool_[parent].parent == kNoIndex ? std::string_view() : pool_[parent].name;
    LayerNumber number;
    const auto count = [&](uint32_t node) {
      return FindLayerNumber(pool_[node].name, up, &number) ? next[std::string(number.prefix)]++ : -1;
    };
    for (uint32_t c : there)
      if (pool_[c].type == NodeType::kModule) count(c);
    for (size_t i = 0; i < moved->size(); ++i) {
      const uint32_t node = (*moved)[forward ? i : moved->size() - 1 - i].node;
      pool_[node].parent = parent;
      const int layer = pool_[node].type == NodeType::kModule ? count(node) : -1;
      if (layer >= 0) {
        const std::string from = std::string(number.prefix) + std::to_string(number.number) + ".";
        pool_.Rename(node, from, std::string(number.prefix) + std::to_string(layer) + ".");
      } else {
        pool_.Rename(node, "", "");
      }
      pool_.NoteMove(node);
    }
  }

  MergePool& pool_;
  std::vector<uint32_t> ranks_;
  std::map<uint32_t, std::vector<Moved>> moved_;  // by new parent
  std::unordered_set<uint32_t> gone_;
  std::set<std::string, std::less<>> layers_;
  JsonDoc doc_, other_;
};

std::string WithChunk(std::string_view name, int chunk) {
  const size_t first = name.find('.');
  if (first == std::string_view::npos) return std::string(name);
  const size_t second = name.find('.', first + 1);
  if (second == std::string_view::npos || !IsDigits(name.substr(first + 1, second - first - 1)))
    return std::string(name);
  return std::string(name.substr(0, first + 1)) + std::to_string(chunk) + std::string(name.substr(second));
}

class ChunkMerger {
 public:
  ChunkMerger(MergePool* pool, uint32_t root) : pool_(*pool), root_(root) {}

  void Run() {
    const int chunks = pool_.settings().vpp;
    for (int chunk = 1; chunk < chunks; ++chunk) {
      std::map<std::string, uint32_t, std::less<>> targets;
      for (uint32_t c : pool_[root_].children)
        if (pool_[c].type == NodeType::kModule && Segment(pool_[c].name, 1) == "0") targets.emplace(pool_[c].name, c);
      std::vector<uint32_t> left;
      for (uint32_t c : pool_[root_].children) {
        const bool other = pool_[c].type == NodeType::kModule && Segment(pool_[c].name, 1) == std::to_string(chunk);
        const auto it = other ? targets.find(WithChunk(pool_[c].name, 0)) : targets.end();
        if (it == targets.end()) {
          left.push_back(c);
        } else {
          Join(it->second, c, chunk + 1 == chunks);
        }
      }
      pool_[root_].children = std::move(left);
    }
  }

 private:
  // The children of `from` into `to`, which is the same module in the first chunk.
  void Join(uint32_t to, uint32_t from, bool last) {
    const bool forward = IsForward(pool_[to].name);
    if (last) {
      // What the chunk shows may itself be another rank's.
      if (forward) {
        pool_[to].output = pool_[from].output != kNoIndex ? pool_[from].output : from;
        pool_.NoteTake(to, true, pool_[to].output);
      } else {
        pool_[to].input = pool_[from].input != kNoIndex ? pool_[from].input : from;
        pool_.NoteTake(to, false, pool_[to].input);
      }
    }
    std::map<std::string, uint32_t, std::less<>> targets;
    for (uint32_t c : pool_[to].children) targets.emplace(pool_[c].name, c);
    std::vector<uint32_t> more;
    LayerNumber number;
    for (uint32_t c : pool_[from].children) {
      const bool layer = FindLayerNumber(pool_[c].name, pool_[from].name, &number);
      const auto it =
          pool_[c].type == NodeType::kModule && !layer ? targets.find(WithChunk(pool_[c].name, 0)) : targets.end();
      if (it != targets.end()) {
        Join(it->second, c, last);
      } else {
        more.push_back(c);
      }
    }
    auto& children = pool_[to].children;
    children.insert(forward ? children.end() : children.begin(), more.begin(), more.end());
    std::map<std::string, int, std::less<>> next;
    for (size_t i = 0; i < children.size(); ++i) {
      const uint32_t c = children[forward ? i : children.size() - 1 - i];
      const bool is_new = std::find(more.begin(), more.end(), c) != more.end();
      pool_[c].parent = to;
      if (pool_[c].type != NodeType::kModule) continue;
      const bool layer = FindLayerNumber(pool_[c].name, is_new ? pool_[from].name : pool_[to].name, &number);
      const std::string prefix = layer ? WithChunk(number.prefix, 0) : "";
      const int index = layer ? next[prefix]++ : -1;
      if (!is_new) continue;
      if (layer) {
        const std::string was = std::string(number.prefix) + std::to_string(number.number) + ".";
        pool_.Rename(c, was, prefix + std::to_string(index) + ".");
      } else {
        const std::string was = std::string(pool_[c].name);
        pool_.Rename(c, ChunkPrefix(was), ChunkPrefix(WithChunk(was, 0)));
      }
      pool_.NoteMove(c);
    }
  }

  static std::string ChunkPrefix(std::string_view name) {
    const size_t second = name.find('.', name.find('.') + 1);
    return std::string(name.substr(0, second == std::string_view::npos ? 0 : second + 1));
  }

  MergePool& pool_;
  const uint32_t root_;
};

}  // namespace

Status MergePipeline(MergePool* pool, size_t cell) {
  if (pool->Stages() < 2) return OkStatus();
  return PipelineMerger(pool, cell).Run();
}

void MergeChunks(MergePool* pool, uint32_t root) {
  if (pool->settings().vpp > 1) ChunkMerger(pool, root).Run();
}

void MergeExperts(MergePool* pool) {
  const size_t ep = pool->Shares();
  if (ep < 2) return;
  LayerNumber number;
  for (size_t stage = 0; stage < pool->Stages(); ++stage) {
    const uint32_t first = pool->At(stage, 0);
    const size_t nodes = pool->Graph(first).graph.nodes.size();
    for (uint32_t i = 0; i < nodes; ++i) {
      const uint32_t parent = pool->Root(first) + i;
      int local = 0;  // how many experts each rank holds
      for (uint32_t c : (*pool)[parent].children) {
        if (FindExpertNumber((*pool)[c].name, (*pool)[parent].name, &number))
          local = std::max(local, number.number + 1);
      }
      if (local == 0) continue;
      for (size_t e = 1; e < ep; ++e) {
        const uint32_t other = pool->Find(pool->At(stage, pool->FirstOf(e)), (*pool)[parent].was);
        if (other == kNoIndex) continue;
        std::set<std::string_view> there;
        for (uint32_t c : (*pool)[parent].children) there.insert((*pool)[c].name);
        const std::vector<uint32_t> children = (*pool)[other].children;
        const bool global = std::none_of(children.begin(), children.end(), [&](uint32_t c) {
          return FindExpertNumber((*pool)[c].name, (*pool)[other].name, &number) && there.contains((*pool)[c].name);
        });
        std::vector<uint32_t> more;
        for (uint32_t c : children) {
          if (!FindExpertNumber((*pool)[c].name, (*pool)[other].name, &number)) continue;
          const int to = global ? number.number : number.number + static_cast<int>(e) * local;
          const std::string prefix(number.prefix);
          pool->Rename(c, prefix + std::to_string(number.number) + ".", prefix + std::to_string(to) + ".");
          (*pool)[c].parent = parent;
          more.push_back(c);
        }
        auto& mine = (*pool)[parent].children;
        mine.insert(IsForward((*pool)[parent].name) ? mine.end() : mine.begin(), more.begin(), more.end());
        for (uint32_t c : more) pool->NoteMove(c);
      }
    }
  }
}

}  // namespace msprobe
