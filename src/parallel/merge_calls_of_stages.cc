// Pipeline stages without modules (level L1): their calls in the order in which one rank would have made them. What a
// stage sends is found again, by its statistics, as what another stage takes: there the calls are cut, and the pieces
// follow each other as the values go.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "dump/flatten.h"
#include "graph/tree/flat_structure.h"
#include "ops/collective.h"
#include "parallel/merge_pool.h"
#include "parallel/merge_stats.h"

namespace msprobe {
namespace {

/// A call: its stage, and which one of it.
using Place = std::pair<size_t, size_t>;

/// What tells tensors apart; nothing where there are no statistics.
std::optional<size_t> KeyOf(const JsonValue* leaf) {
  if (!leaf || !leaf->IsObject()) return std::nullopt;
  const TensorStats s = TensorStats::Of(*leaf);
  if (!s.max.given() || !s.min.given() || !s.mean.given() || !s.norm.given()) return std::nullopt;
  return std::hash<std::string>{}(
      fmt::format("{} {} {} {} {}", s.max.value(), s.min.value(), s.mean.value(), s.norm.value(), s.elements));
}

class StageCalls {
 public:
  StageCalls(MergePool* pool, size_t cell) : pool_(*pool), cell_(cell) {}

  Status Run() {
    for (size_t stage = 0; stage < pool_.Stages(); ++stage) MSP_RETURN_IF_ERROR(ReadStage(stage));
    for (size_t stage = 0; stage < pool_.Stages(); ++stage) FollowSends(stage);
    Arrange();
    return OkStatus();
  }

 private:
  struct Send {
    size_t at = 0, key = 0;
  };
  struct Stage {
    std::vector<uint32_t> calls;  // in the order of the dump
    std::vector<Send> sends;
    std::multimap<size_t, size_t> takes, gives;  // calls by the key of a tensor
    std::set<size_t> starts{0};                  // of pieces
  };

  Status ReadStage(size_t stage) {
    Stage& s = stages_.emplace_back();
    const uint32_t rank = pool_.At(stage, cell_);
    for (const std::string_view module : {kAllCallsForward, kAllCallsBackward}) {
      const uint32_t node = pool_.Find(rank, module);
      if (node == kNoIndex) continue;
      s.calls.insert(s.calls.end(), pool_[node].children.begin(), pool_[node].children.end());
    }
    std::sort(s.calls.begin(), s.calls.end(), [&](uint32_t a, uint32_t b) { return pool_[a].op < pool_[b].op; });
    JsonDoc doc;
    std::vector<Item> items;
    for (size_t i = 0; i < s.calls.size(); ++i) {
      const std::string_view name = pool_[s.calls[i]].was;
      MSP_RETURN_IF_ERROR(pool_.ReadOp(s.calls[i], &doc));
      if (!doc.IsObject()) continue;
      items.clear();
      FlattenOp(name, doc, &items);
      const bool transfer = IsTransfer(name);
      const bool sends = transfer && FlowOf(CommApi(name)) != CommFlow::kReceive;
      for (const Item& item : items) {
        const std::optional<size_t> key = KeyOf(item.leaf);
        if (!key) continue;
        const bool output = item.state == ItemState::kOutput;
        if (!transfer) {
          (output ? s.gives : s.takes).emplace(*key, i);
        } else if (sends && !output) {
          s.sends.push_back({i, *key});
        }
      }
    }
    return OkStatus();
  }

  void FollowSends(size_t stage) {
    Stage& s = stages_[stage];
    for (const Send& send : s.sends) {
      const auto taker = TakerOf(stage, send.key);
      if (!taker) continue;
      size_t giver = send.at;
      const auto [first, last] = s.gives.equal_range(send.key);
      for (auto it = first; it != last; ++it) {
        if (it->second < send.at) giver = it->second;
      }
      taken_.insert(*taker);
      stages_[taker->first].starts.insert(taker->second);
      s.starts.insert(send.at + 1);
      // A stage that is given nothing begins a micro batch behind the backward pass of another.
      if (WayOf(*taker) == kAllCallsForward) s.starts.insert(BeginOf(stage, giver));
      edges_.push_back({{stage, giver}, *taker});
    }
  }

  std::optional<Place> TakerOf(size_t stage, size_t key) const {
    for (size_t other = 0; other < stages_.size(); ++other) {
      if (other == stage) continue;
      const auto [first, last] = stages_[other].takes.equal_range(key);
      for (auto it = first; it != last; ++it) {
        const Place start{other, BeginOf(other, it->second)};
        if (!taken_.contains(start)) return start;
      }
    }
    return std::nullopt;
  }

  static bool TakesFrom(const Stage& s, size_t call, size_t giver) {
    return std::any_of(s.gives.begin(), s.gives.end(), [&](const auto& given) {
      if (given.second != giver) return false;
      const auto [first, last] = s.takes.equal_range(given.first);
      return std::any_of(first, last, [&](const auto& taken) { return taken.second == call; });
    });
  }

  std::string_view WayOf(const Place& call) const {
    return pool_[pool_[stages_[call.first].calls[call.second]].parent].was;
  }

  /// Where the work on what was received begins: calls that take it first may not be recorded, so it is the call behind
  /// the last communication between stages, or behind the last one of the other pass.
  size_t BeginOf(size_t stage, size_t call) const {
    const Stage& s = stages_[stage];
    size_t begin = call;
    while (begin > 0 && WayOf({stage, begin - 1}) == WayOf({stage, call}) && !IsTransfer(pool_[s.calls[begin - 1]].was))
      --begin;
    // Hooks of the other pass still take what its last call gave.
    const size_t last = begin;
    while (last > 0 && begin < call && TakesFrom(s, begin, last - 1)) ++begin;
    return begin;
  }

  Place StartOf(const Place& call) const {
    return {call.first, *std::prev(stages_[call.first].starts.upper_bound(call.second))};
  }

  /// The pieces that begin with what nobody sent, each followed by those that its values go to.
  std::vector<Place> Order() const {
    std::multimap<Place, Place> next;
    for (const auto& [from, to] : edges_) next.emplace(StartOf(from), to);
    std::vector<Place> out;
    std::set<Place> done;
    for (const bool begins : {true, false}) {
      for (size_t stage = 0; stage < stages_.size(); ++stage) {
        for (const size_t start : stages_[stage].starts) {
          if (begins && taken_.contains({stage, start})) continue;
          std::vector<Place> stack{{stage, start}};
          while (!stack.empty()) {
            const Place at = stack.back();
            stack.pop_back();
            if (!done.insert(at).second) continue;
            out.push_back(at);
            const auto [first, last] = next.equal_range(at);
            for (auto it = last; it != first;) stack.push_back((--it)->second);
          }
        }
      }
    }
    return out;
  }

  void Arrange() {
    const uint32_t to[] = {pool_.Find(pool_.At(0, cell_), kAllCallsForward),
                           pool_.Find(pool_.At(0, cell_), kAllCallsBackward)};
    std::vector<uint32_t> children[2];
    for (const auto& [stage, start] : Order()) {
      const Stage& s = stages_[stage];
      const auto end = s.starts.upper_bound(start);
      for (size_t i = start; i < (end == s.starts.end() ? s.calls.size() : *end); ++i) {
        const uint32_t call = s.calls[i];
        const size_t way = pool_[pool_[call].parent].was == kAllCallsForward ? 0 : 1;
        if (stage > 0) pool_.RenameCall(call);
        children[way].push_back(call);
      }
    }
    for (const size_t way : {size_t{0}, size_t{1}}) {
      for (const uint32_t call : children[way]) pool_[call].parent = to[way];
      pool_[to[way]].children = std::move(children[way]);
    }
  }

  MergePool& pool_;
  const size_t cell_;
  std::vector<Stage> stages_;
  std::set<Place> taken_;  // calls that take what another stage sends
  std::vector<std::pair<Place, Place>> edges_;
};

}  // namespace

Status MergeCallsOfStages(MergePool* pool, size_t cell) {
  if (pool->Stages() < 2) return OkStatus();
  return StageCalls(pool, cell).Run();
}

}  // namespace msprobe
