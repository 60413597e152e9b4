#include "graph/comm/comm_findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "base/message.h"
#include "base/text.h"

namespace msprobe {
namespace {

std::string RankList(const std::vector<int>& ranks) {
  static constexpr size_t kShown = 8;
  if (ranks.size() <= kShown) return fmt::format("{}", fmt::join(ranks, ", "));
  return fmt::format("{}, ... ({} in all)", fmt::join(ranks.begin(), ranks.begin() + kShown, ", "), ranks.size());
}

std::string Ranks(const std::vector<int>& ranks) { return (ranks.size() == 1 ? "rank " : "ranks ") + RankList(ranks); }

class Checker {
 public:
  Checker(const std::vector<RankNodeCalls>& ranks, const CommGraph& graph) : ranks_(ranks), graph_(graph) {
    for (const RankNodeCalls& r : ranks) world_.push_back(r.rank);
  }

  std::vector<GraphFinding> Run() {
    CheckSequences();
    CheckPairs();
    CheckData();
    return std::move(findings_);
  }

 private:
  struct Place {
    uint32_t rank = 0, call = 0;
  };
  using Sequence = std::vector<uint32_t>;  // calls of one rank

  const NodeCall& CallAt(Place p) const { return ranks_[p.rank].calls[p.call]; }
  std::string Named(Place p) const { return fmt::format("{} of rank {}", CallAt(p).node, ranks_[p.rank].rank); }

  void Add(FindingKind kind, Place at, Message text) {
    GraphFinding f;
    f.kind = kind;
    f.rank = ranks_[at.rank].ShownAt(CallAt(at));
    f.row_id = CallAt(at).row_id;
    f.node = CallAt(at).node;
    f.text = std::move(text);
    findings_.push_back(std::move(f));
  }

  /// The ranks of a group must make the same collective calls in the same order.
  void CheckSequences() {
    std::map<std::vector<int>, std::map<uint32_t, Sequence>> groups;
    for (uint32_t r = 0; r < ranks_.size(); ++r) {
      for (uint32_t c = 0; c < ranks_[r].calls.size(); ++c) {
        for (const CommTransfer& t : ranks_[r].calls[c].transfers) {
          if (t.kind == CommTransfer::Kind::kGroup) groups[t.group.empty() ? world_ : t.group][r].push_back(c);
        }
      }
    }
    for (auto& [group, calls] : groups) {
      for (uint32_t r = 0; r < ranks_.size(); ++r) {  // a rank of the group without any call
        if (std::binary_search(group.begin(), group.end(), ranks_[r].rank)) calls[r];
      }
      CheckGroup(group, calls);
    }
  }

  /// What call `i` of a sequence is, with what it moves when asked; "" behind the end.
  std::string CallText(uint32_t rank, const Sequence& s, size_t i, bool with_data) const {
    if (i >= s.size()) return {};
    const NodeCall& call = ranks_[rank].calls[s[i]];
    if (!with_data || call.data.empty() || call.data[0].elements < 0) return call.api;
    return fmt::format("{} {} {}", call.api, call.data[0].elements, call.data[0].dtype);
  }

  /// The first place where the sequences of a group part.
  void CheckGroup(const std::vector<int>& group, const std::map<uint32_t, Sequence>& calls) {
    if (calls.size() < 2) return;
    size_t longest = 0, shortest = SIZE_MAX;
    for (const auto& [rank, s] : calls) {
      longest = std::max(longest, s.size());
      shortest = std::min(shortest, s.size());
    }
    for (size_t i = 0; i < longest; ++i) {
      std::map<std::string, std::vector<uint32_t>> by_api;  // "" for those at their end
      // Where a call is missing, those behind it are of one kind for a while, but move other data.
      for (const auto& [rank, s] : calls) by_api[CallText(rank, s, i, longest != shortest)].push_back(rank);
      if (by_api.size() == 1) continue;
      // Most ranks are right; of equals, those that still make calls, then the first.
      auto most = by_api.end();
      for (auto it = by_api.begin(); it != by_api.end(); ++it) {
        if (it->first.empty()) continue;
        const auto better = [&] {
          if (it->second.size() != most->second.size()) return it->second.size() > most->second.size();
          return it->second.front() < most->second.front();
        };
        if (most == by_api.end() || better()) most = it;
      }
      uneven_.insert(group);
      for (const auto& [api, members] : by_api) {
        if (api != most->first) Explain(group, calls, i, most->second, members);
      }
      return;
    }
  }

  std::map<std::string_view, size_t> Counts(uint32_t rank, const Sequence& s) const {
    std::map<std::string_view, size_t> out;
    for (uint32_t c : s) ++out[ranks_[rank].calls[c].api];
    return out;
  }

  /// Why `others` do not make call `i` of the group as `right` do.
  void Explain(const std::vector<int>& group, const std::map<uint32_t, Sequence>& calls, size_t i,
               const std::vector<uint32_t>& right, const std::vector<uint32_t>& others) {
    const Sequence& expected = calls.at(right.front());
    const Sequence& found = calls.at(others.front());
    const Place place{right.front(), expected[i]};
    std::vector<int> numbers;
    bool cut = false;
    for (uint32_t r : others) {
      numbers.push_back(ranks_[r].rank);
      cut |= ranks_[r].truncated;
    }
    const std::string api = CallAt(place).api;
    const auto want = Counts(right.front(), expected), have = Counts(others.front(), found);
    const size_t wanted = want.at(api), there = have.contains(api) ? have.at(api) : 0;
    const Message in_group = Msg("in the group of ranks {}", RankList(group));
    if (i >= found.size()) {
      const Message why =
          cut ? Msg("its dump is cut, the run hung or was killed there") : Msg("the others wait for it and hang");
      const std::string who = Ranks(numbers), goes_on = fmt::format("rank {}", ranks_[right.front()].rank);
      Add(FindingKind::kMissingCall, place,
          numbers.size() == 1 ? Msg("{} stops after {} collective calls {}, {} goes on with {}: {}", who, i, in_group,
                                    goes_on, CallAt(place).node, why)
                              : Msg("{} stop after {} collective calls {}, {} goes on with {}: {}", who, i, in_group,
                                    goes_on, CallAt(place).node, why));
    } else if (there < wanted) {
      const std::string who = Ranks(numbers), first = Named(place);
      Add(FindingKind::kMissingCall, place,
          numbers.size() == 1
              ? Msg("{} calls {} {} times {} and not {} times: the first call without a counterpart is {}", who, api,
                    there, in_group, wanted, first)
              : Msg("{} call {} {} times {} and not {} times: the first call without a counterpart is {}", who, api,
                    there, in_group, wanted, first));
    } else {
      const Place other{others.front(), found[i]};
      Add(want == have ? FindingKind::kCallOrder : FindingKind::kMissingCall, place,
          Msg("collective call {} {} is {} but {}: the ranks make their calls in a different order", i, in_group,
              Named(place), Named(other)));
    }
  }

  struct Ends {
    std::vector<Place> sends, receives;
  };

  static bool IsObject(std::string_view api) { return Contains(api, "object"); }

  size_t IndexOf(int rank) const { return graph_.IndexOf(rank); }

  /// Every send has a receive.
  void CheckPairs() {
    std::map<std::tuple<int, int, int, bool>, Ends> pairs;  // from, to, tag, objects
    std::map<std::pair<int, bool>, size_t> open;            // receives from anybody
    for (uint32_t r = 0; r < ranks_.size(); ++r) {
      for (uint32_t c = 0; c < ranks_[r].calls.size(); ++c) {
        const NodeCall& call = ranks_[r].calls[c];
        for (const CommTransfer& t : call.transfers) {
          if (t.kind != CommTransfer::Kind::kPair) continue;
          const int own = ranks_[r].rank;
          if (t.peer == CommTransfer::kUnknown) {
            if (t.takes) ++open[{own, IsObject(call.api)}];
            continue;
          }
          Ends& ends = pairs[{t.gives ? own : t.peer, t.gives ? t.peer : own, t.tag, IsObject(call.api)}];
          (t.gives ? ends.sends : ends.receives).push_back({r, c});
        }
      }
    }
    for (const auto& [key, ends] : pairs) {
      const auto& [from, to, tag, objects] = key;
      if (IndexOf(from) == CommGraph::kNoRank || IndexOf(to) == CommGraph::kNoRank) continue;
      size_t receives = ends.receives.size();
      if (ends.sends.size() > receives) {
        size_t& any = open[{to, objects}];
        const size_t taken = std::min(any, ends.sends.size() - receives);
        any -= taken;
        receives += taken;
      }
      if (ends.sends.size() == receives) continue;
      uneven_pairs_.insert({from, to});
      const bool lost = ends.sends.size() > receives;
      const Place place = lost ? ends.sends[receives] : ends.receives[ends.sends.size()];
      Add(FindingKind::kNoPartner, place,
          Msg("rank {} sends {} times to rank {} (tag {}), which receives {} times: {} has no partner", from,
              ends.sends.size(), to, tag, receives, Named(place)));
    }
  }

  struct Member {
    Place place;
    const CommTransfer* transfer = nullptr;
    const CommData* data = nullptr;
  };

  /// Whose partners are not what they seem, since a call before is missing.
  bool IsShifted(const Member& m) const {
    const CommTransfer& t = *m.transfer;
    const int own = ranks_[m.place.rank].rank;
    if (t.kind == CommTransfer::Kind::kGroup) return uneven_.contains(t.group.empty() ? world_ : t.group);
    return uneven_pairs_.contains({t.gives ? own : t.peer, t.gives ? t.peer : own});
  }

  std::vector<Member> MembersOf(uint32_t event) const {
    std::vector<Member> out;
    for (const CommMember& m : graph_.events[event].members) {
      const std::vector<CommPart>& parts = graph_.ranks[m.rank].calls[m.call].parts;
      const NodeCall& call = ranks_[m.rank].calls[m.call];
      if (parts.size() != call.transfers.size()) continue;  // some partner is not known
      for (size_t i = 0; i < parts.size(); ++i) {
        if (parts[i].event == event) out.push_back({{m.rank, m.call}, &call.transfers[i], &call.data[i]});
      }
    }
    return out;
  }

  /// All members of an exchange move the same amount of the same type, reduce in the same way, and agree on the root.
  void CheckData() {
    std::set<std::tuple<std::string, std::string, std::vector<int>>> told;  // one of a kind, call and group
    for (uint32_t e = 0; e < graph_.events.size(); ++e) {
      const std::vector<Member> members = MembersOf(e);
      if (members.size() < 2 || IsShifted(members[0])) continue;
      for (size_t i = 1; i < members.size(); ++i) {
        const std::optional<std::pair<FindingKind, Message>> fault = Fault(members[0], members[i]);
        if (!fault) continue;
        std::vector<int> ranks;
        for (const Member& m : members) ranks.push_back(ranks_[m.place.rank].rank);
        if (told.emplace(fault->second.English().substr(0, fault->second.English().find(' ')),
                         CallAt(members[0].place).api, ranks)
                .second)
          Add(fault->first, members[0].place,
              Msg("{} and {} are one exchange, but {}", Named(members[0].place), Named(members[i].place),
                  fault->second));
        break;
      }
    }
  }

  /// Kind and words.
  static std::optional<std::pair<FindingKind, Message>> Fault(const Member& a, const Member& b) {
    const CommData &x = *a.data, &y = *b.data;
    const auto differ = [&](Message what) { return std::make_pair(FindingKind::kCallData, std::move(what)); };
    if (!x.dtype.empty() && !y.dtype.empty() && x.dtype != y.dtype)
      return differ(Msg("dtypes are {} and {}", x.dtype, y.dtype));
    if (x.elements >= 0 && y.elements >= 0 && x.elements != y.elements)
      return differ(Msg("shapes are {} and {}", x.shape, y.shape));
    if (!x.reduction.empty() && !y.reduction.empty() && x.reduction != y.reduction)
      return differ(Msg("reductions are {} and {}", x.reduction, y.reduction));
    if (a.transfer->kind == CommTransfer::Kind::kGroup && a.transfer->root != b.transfer->root) {
      return std::make_pair(FindingKind::kCallRoot,
                            Msg("roots are rank {} and rank {}", a.transfer->root, b.transfer->root));
    }
    return std::nullopt;
  }

  const std::vector<RankNodeCalls>& ranks_;
  const CommGraph& graph_;
  std::vector<int> world_;
  std::set<std::vector<int>> uneven_;  // groups whose sequences part
  std::set<std::pair<int, int>> uneven_pairs_;
  std::vector<GraphFinding> findings_;
};

}  // namespace

std::vector<GraphFinding> CheckCommunication(const std::vector<RankNodeCalls>& ranks, const CommGraph& graph) {
  return Checker(ranks, graph).Run();
}

}  // namespace msprobe
