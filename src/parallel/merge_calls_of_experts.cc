// Experts without modules (level L1): the calls of those on other ranks stand beside those of the first, in the order
// in which one rank would have made them.
#include <algorithm>
#include <deque>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/big_array.h"
#include "base/slot_table.h"
#include "base/text.h"
#include "graph/tree/flat_structure.h"
#include "graph/tree/matcher.h"
#include "match/match_plan.h"
#include "parallel/expert_calls.h"
#include "parallel/merge_pool.h"

namespace msprobe {
namespace {

using NodeList = std::vector<uint32_t>;

/// Where calls of other ranks go among those of the first: next to one of its calls, or in front of a module's.
struct ExpertPlaces {
  std::map<uint32_t, NodeList> before, behind;
  NodeList first[2];  // of the forward module, of the backward module
};

/// The calls of the ranks of one stage.
class ExpertsOfStage {
 public:
  ExpertsOfStage(MergePool* pool, size_t stage, ExpertPlaces* places) : pool_(*pool), stage_(stage), places_(*places) {}

  /// `any`: there are experts.
  Status Run(bool* any) {
    for (size_t cell = 0; cell < pool_.Cells(); ++cell) {
      MSP_ASSIGN_OR_RETURN(CallsOfRank calls, FindExpertCalls(pool_, stage_, cell));
      ranks_.push_back(std::move(calls));
      if (ranks_[cell].experts.size() != ranks_[0].experts.size()) return UnknownExpertCalls(pool_, stage_, cell);
      for (const ExpertCalls& experts : ranks_[cell].experts) {
        for (const uint32_t call : experts.calls) pool_[call].of_expert = true;
      }
    }
    *any = *any || !ranks_[0].experts.empty();
    for (size_t cell = 1; cell < pool_.Cells(); ++cell) AlignWithFirst(cell);
    for (size_t i = 0; i < ranks_[0].experts.size(); ++i) {
      for (const size_t way : {size_t{0}, size_t{1}}) Place(i, way);
    }
    return OkStatus();
  }

 private:
  /// Ranks whose experts make other numbers of calls count what they call later otherwise.
  void AlignWithFirst(size_t cell) {
    Align(ranks_[0].own, cell, ranks_[cell].own);
    const size_t first = pool_.FirstOf(pool_.ShareOf(cell));
    for (size_t i = 0; first != cell && i < ranks_[cell].experts.size(); ++i) {
      Align(ranks_[first].experts[i].calls, cell, ranks_[cell].experts[i].calls);
    }
  }

  void Align(const NodeList& calls, size_t cell, const NodeList& peers) {
    if (std::ranges::equal(calls, peers, [&](uint32_t a, uint32_t b) { return pool_[a].was == pool_[b].was; })) return;
    TextIds names;
    std::deque<std::string> texts;
    const auto ids = [&](const NodeList& of) {
      BigArray<uint32_t> out;
      for (const uint32_t call : of) out.push_back(names.Enter(texts.emplace_back(NameWithoutCounts(pool_[call].was))));
      return out;
    };
    const uint32_t rank = pool_.At(stage_, cell);
    for (const uint32_t call : calls) pool_.SetPeer(call, rank, kNoIndex);
    for (const IndexPair& p : AlignSequences(ids(calls), ids(peers)))
      pool_.SetPeer(calls[p.first], rank, peers[p.second]);
  }

  size_t WayOf(uint32_t call) const { return Contains(pool_[call].was, ".backward") ? 1 : 0; }

  NodeList CallsOf(size_t share, size_t place, size_t way) const {
    NodeList out;
    std::ranges::copy_if(ranks_[pool_.FirstOf(share)].experts[place].calls, std::back_inserter(out),
                         [&](uint32_t call) { return WayOf(call) == way; });
    return out;
  }

  /// What the other shares called where the first rank called its experts.
  void Place(size_t place, size_t way) {
    const size_t own = pool_.ShareOf(0), last = pool_.Shares() - 1;
    const bool backward = ranks_[0].experts[place].backward;
    NodeList earlier, later;
    for (size_t i = 0; i <= last; ++i) {
      const size_t share = backward ? last - i : i;
      if (share == own) continue;
      NodeList& to = (share < own) != backward ? earlier : later;
      for (const uint32_t call : CallsOf(share, place, way)) {
        pool_.RenameCall(call);
        to.push_back(call);
      }
    }
    const NodeList calls = CallsOf(own, place, way);
    NodeList& before = calls.empty() ? BehindOwn(place, way) : places_.before[calls.front()];
    before.insert(before.end(), earlier.begin(), earlier.end());
    NodeList& behind = calls.empty() ? before : places_.behind[calls.back()];
    behind.insert(behind.end(), later.begin(), later.end());
  }

  /// Behind what the first rank called before the tokens came.
  NodeList& BehindOwn(size_t place, size_t way) {
    for (size_t i = ranks_[0].experts[place].begin; i-- > 0;) {
      if (WayOf(ranks_[0].own[i]) == way) return places_.behind[ranks_[0].own[i]];
    }
    return places_.first[way];
  }

  MergePool& pool_;
  const size_t stage_;
  ExpertPlaces& places_;
  std::vector<CallsOfRank> ranks_;  // by cell
};

void PlaceIn(MergePool* pool, uint32_t module, const NodeList& first, const ExpertPlaces& places) {
  NodeList children;
  const auto add = [&](const NodeList& calls) {
    for (const uint32_t call : calls) {
      (*pool)[call].parent = module;
      children.push_back(call);
    }
  };
  const auto add_at = [&](const std::map<uint32_t, NodeList>& at, uint32_t call) {
    if (const auto it = at.find(call); it != at.end()) add(it->second);
  };
  add(first);
  for (const uint32_t call : (*pool)[module].children) {
    add_at(places.before, call);
    children.push_back(call);
    add_at(places.behind, call);
  }
  (*pool)[module].children = std::move(children);
}

}  // namespace

Status MergeCallsOfExperts(MergePool* pool) {
  if (pool->Shares() < 2) return OkStatus();
  ExpertPlaces places;
  bool any = false;  // a stage may have layers without experts alone
  for (size_t stage = 0; stage < pool->Stages(); ++stage)
    MSP_RETURN_IF_ERROR(ExpertsOfStage(pool, stage, &places).Run(&any));
  if (!any) return UnknownExpertCalls(*pool, 0, 0);
  for (const size_t way : {size_t{0}, size_t{1}}) {
    const uint32_t module = pool->Find(pool->At(0, 0), way == 0 ? kAllCallsForward : kAllCallsBackward);
    if (module != kNoIndex) PlaceIn(pool, module, places.first[way], places);
  }
  return OkStatus();
}

}  // namespace msprobe
