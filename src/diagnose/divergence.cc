#include "diagnose/divergence.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "diagnose/received.h"
#include "ops/op_name.h"

namespace msprobe {
namespace {

using Kind = FirstDifference::Kind;

constexpr size_t kGroupsKept = 2000, kModulesKept = 5;
constexpr std::string_view kBackward = " (backward)";

std::string RanksText(const std::vector<int>& ranks) {
  constexpr size_t kShown = 8;
  std::string out = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size() && i < kShown; ++i) out += (i ? ", " : "") + std::to_string(ranks[i]);
  if (ranks.size() > kShown) out += fmt::format(", ... ({} in all)", ranks.size());
  return out;
}

class Finder {
 public:
  Finder(int step, std::vector<RankFindings> ranks) : ranks_(std::move(ranks)) {
    out_.step = step;
    // Ranks without a number (proc directories) are told apart by their position.
    for (size_t i = 0; ranks_.size() > 1 && i < ranks_.size(); ++i) {
      if (ranks_[i].rank < 0) ranks_[i].rank = ranks_[i].calls.rank.rank = static_cast<int>(i);
    }
    std::sort(ranks_.begin(), ranks_.end(),
              [](const RankFindings& a, const RankFindings& b) { return a.rank < b.rank; });
    // Where one rank draws what it drew in the golden run, all should.
    const bool alike = std::ranges::any_of(ranks_, [](const RankFindings& r) { return r.differences.draws_alike; });
    std::vector<RankCalls> calls;
    for (RankFindings& r : ranks_) {
      FirstDifference& source = r.differences.source;
      if (alike && source.kind == Kind::kDraw) source.kind = Kind::kOp, source.verdict = RulerVerdict::kSuspicious;
      calls.push_back(std::move(r.calls));
      for (InfectedGroup& g : r.infected) g.rank = r.rank;
    }
    graph_ = JoinCalls(std::move(calls));
  }

  StatusOr<Divergence> Run() {
    MSP_RETURN_IF_ERROR(FindReceived());
    FindRoots();
    if (roots_.empty()) return std::move(out_);
    out_.found = true;
    const Root main = roots_.front();
    out_.creator = OriginOf(main);
    const std::vector<size_t> reached = ReachedFrom(main);
    JoinSame(main, reached);
    AddOthers(main, reached);
    AddHandovers();
    AddCarriers(reached);
    AddInfection(main, reached);
    AddEvidence(main, reached);
    AddIndependent(main);  // at last: a rank that has one may be reached by the creator all the same
    return std::move(out_);
  }

 private:
  struct Root {
    size_t rank = 0;  // position
    size_t op = 0;
    int grade = 0;  // 0: a difference that stands out; 1: differences that add up; 2: dtypes only
    bool collective = false;
    CommTime time;
    const FirstDifference* difference = nullptr;
  };

  /// Position of the call at `op`, or calls.size().
  size_t CallAt(size_t rank, size_t op) const {
    const CommRank& r = graph_.ranks[rank];
    const size_t c = r.CallFrom(op);
    return c < r.calls.size() && r.calls[c].op == op ? c : r.calls.size();
  }
  bool IsCall(size_t rank, size_t call) const { return call < graph_.ranks[rank].calls.size(); }
  uint8_t MarkOf(const CommMember& m) const {
    const size_t op = graph_.ranks[m.rank].calls[m.call].op;
    return op < ranks_[m.rank].marks.size() ? ranks_[m.rank].marks[op] : 0;
  }
  /// Ranks that give something else to this call than in the golden run.
  std::vector<int> GuiltyGivers(size_t rank, size_t call) const {
    std::vector<int> out;
    for (const CommMember& m : graph_.GiversOf(rank, call)) {
      if (MarkOf(m) & RankFindings::kStartsApart) out.push_back(graph_.ranks[m.rank].rank);
    }
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
  }

  /// A dump of modules does not have the calls by which ranks give each other values; the values themselves tell.
  Status FindReceived() {
    giver_of_.assign(ranks_.size(), CommGraph::kNoRank);
    std::vector<RankValues> values;
    for (size_t r = 0; r < ranks_.size(); ++r) {
      const FirstDifference& d = ranks_[r].differences.Answer();
      const bool asks = d.kind == Kind::kInput && graph_.ranks[r].calls.empty();
      values.push_back({ranks_[r].files.target, &d, &ranks_[r].marks, RankFindings::kEndsApart, asks});
    }
    if (ranks_.size() == 1 || std::ranges::none_of(values, &RankValues::asks)) return OkStatus();
    MSP_ASSIGN_OR_RETURN(giver_of_, GiversOfValues(values));
    return OkStatus();
  }
  bool IsReceived(size_t rank) const { return giver_of_[rank] != CommGraph::kNoRank; }

  /// As the graph has it, and what the values tell.
  std::vector<size_t> ReachedFrom(const Root& main) const {
    std::vector<size_t> out = graph_.ReachedFrom(main.rank, main.op);
    for (bool more = true; std::exchange(more, false);) {
      for (size_t r = 0; r < ranks_.size(); ++r) {
        const size_t op = ranks_[r].differences.Answer().op;
        if (!IsReceived(r) || r == main.rank || op >= out[r]) continue;
        if (out[giver_of_[r]] >= graph_.ranks[giver_of_[r]].ops) continue;
        out[r] = op;
        more = true;
      }
    }
    return out;
  }

  /// Whether a rank gives memory to this call that it has not written in either run: objects are padded so to one size.
  bool BringsUnwritten(size_t rank, size_t op) const {
    const size_t call = CallAt(rank, op);
    if (!IsCall(rank, call)) return false;
    return std::ranges::any_of(graph_.GiversOf(rank, call),
                               [&](const CommMember& m) { return MarkOf(m) & RankFindings::kReadsUnwritten; });
  }
  /// Whether all that differs on a rank are results of such calls, outside of modules, which nothing that was recorded
  /// reads.
  bool OnlyUnwrittenArrived(size_t rank) const {
    uint64_t differing = 0, padded = 0;
    for (const InfectedGroup& g : ranks_[rank].infected) {
      if (!g.module.empty()) return false;
      differing += g.ops;
    }
    size_t first = SIZE_MAX;  // what differs before it was explained
    for (const BegunOp& b : ranks_[rank].begun) first = std::min<size_t>(first, b.op);
    for (const CommCall& call : graph_.ranks[rank].calls) {
      if (call.op < first) continue;
      const uint8_t mark = call.op < ranks_[rank].marks.size() ? ranks_[rank].marks[call.op] : 0;
      const bool apart = mark & (RankFindings::kStartsApart | RankFindings::kEndsApart);
      padded += apart && (mark & RankFindings::kReadsUnwritten || BringsUnwritten(rank, call.op));
    }
    return differing > 0 && differing == padded &&
           std::ranges::all_of(ranks_[rank].begun, [&](const BegunOp& b) { return BringsUnwritten(rank, b.op); });
  }

  void FindRoots() {
    std::vector<Root> inherited;
    for (size_t r = 0; r < ranks_.size(); ++r) {
      const Differences& d = ranks_[r].differences;
      Root root;
      root.rank = r;
      root.difference = &d.Answer();
      if (root.difference->kind == Kind::kGrows) root.grade = 1;
      if (root.difference->kind == Kind::kDraw) root.grade = 3;
      if (root.difference->kind == Kind::kNone && !d.implementations) {
        root.difference = &d.dtype;
        root.grade = 2;
      }
      if (root.difference->kind == Kind::kNone) continue;
      root.op = root.difference->op;
      root.time = graph_.TimeOf(r, root.op);
      bool from_others = IsReceived(r);
      if (root.difference->kind == Kind::kCommunication) {
        if (OnlyUnwrittenArrived(r)) {
          for (const BegunOp& b : ranks_[r].begun) out_.unread.push_back(b.verdict);
          uint64_t inherited_ops = 0;
          for (const InfectedGroup& g : ranks_[r].infected) inherited_ops += g.ops;
          out_.unread.insert(out_.unread.end(), inherited_ops - ranks_[r].begun.size(), RulerVerdict::kInherited);
          continue;
        }
        const size_t call = CallAt(r, root.op);
        from_others = IsCall(r, call) && (BringsUnwritten(r, root.op) || !GuiltyGivers(r, call).empty());
        root.collective = IsCall(r, call) && !from_others;
      }
      (from_others ? inherited : roots_).push_back(root);
    }
    std::erase_if(roots_, [&](const Root& r) { return FollowsParameter(r); });
    if (roots_.empty()) roots_.swap(inherited);  // each points to the other: the earliest is the best answer
    std::stable_sort(roots_.begin(), roots_.end(), [](const Root& a, const Root& b) {
      return std::tuple(a.grade, a.time, a.rank) < std::tuple(b.grade, b.time, b.rank);
    });
  }

  /// Whether another rank has another parameter in the same call of a module: its ranks add up what they make of it by
  /// a communication that a dump of modules does not have.
  bool FollowsParameter(const Root& r) const {
    if (r.difference->kind != Kind::kOp || !IsModuleName(r.difference->name)) return false;
    return std::ranges::any_of(roots_, [&](const Root& other) {
      return other.rank != r.rank && other.difference->kind == Kind::kParameter &&
             other.difference->name == r.difference->name;
    });
  }

  Origin OriginOf(const Root& root) const {
    Origin out;
    out.rank = ranks_[root.rank].rank;
    out.ranks = {out.rank};
    out.collective = root.collective;
    out.difference = *root.difference;
    out.target_dump = ranks_[root.rank].files.target;
    out.golden_dump = ranks_[root.rank].files.golden;
    out.evidence = ranks_[root.rank].evidence;
    return out;
  }

  /// The same op on other ranks, at the same time: one fault in a program that all ranks run.
  bool IsSame(const Root& a, const Root& b, const std::vector<size_t>& reached) const {
    if (a.difference->kind != b.difference->kind) return false;
    if (a.collective && b.collective && MeetIn(a, b)) return true;
    return a.difference->name == b.difference->name && b.op <= reached[b.rank];
  }

  /// One call of several ranks.
  bool MeetIn(const Root& a, const Root& b) const {
    for (const CommPart& p : graph_.ranks[a.rank].calls[CallAt(a.rank, a.op)].parts) {
      for (const CommPart& q : graph_.ranks[b.rank].calls[CallAt(b.rank, b.op)].parts) {
        if (p.event == q.event) return true;
      }
    }
    return false;
  }

  void JoinSame(const Root& main, const std::vector<size_t>& reached) {
    for (const Root& r : roots_) {
      if (r.rank != main.rank && IsSame(main, r, reached)) out_.creator.ranks.push_back(ranks_[r.rank].rank);
    }
    std::sort(out_.creator.ranks.begin(), out_.creator.ranks.end());
  }

  void AddOthers(const Root& main, const std::vector<size_t>& reached) {
    std::vector<Root> kept;
    for (const Root& r : roots_) {
      if (r.rank == main.rank || IsSame(main, r, reached) || r.grade > main.grade) continue;
      // What the creator may have reached before is no origin of its own; values that statistics hide travel, too.
      if (r.op >= reached[r.rank]) continue;
      const auto like = std::find_if(kept.begin(), kept.end(), [&](const Root& k) { return IsLike(k, r); });
      if (like != kept.end()) {
        out_.others[static_cast<size_t>(like - kept.begin())].ranks.push_back(ranks_[r.rank].rank);
        continue;
      }
      kept.push_back(r);
      out_.others.push_back(OriginOf(r));
    }
  }
  /// What begins behind the difference of a rank, the creator's first, and cannot come from it.
  void AddIndependent(const Root& main) {
    std::vector<size_t> order{main.rank};
    for (size_t r = 0; r < ranks_.size(); ++r) {
      if (r != main.rank) order.push_back(r);
    }
    for (const size_t r : order) {
      for (const FirstDifference& other : ranks_[r].differences.others) AddIndependent(r, other);
    }
  }
  void AddIndependent(size_t rank, const FirstDifference& other) {
    const auto is_same = [&](const Origin& o) {
      return o.difference.kind == other.kind && o.difference.name == other.name && o.difference.item == other.item;
    };
    const auto known = std::ranges::find_if(out_.others, is_same);
    if (known != out_.others.end()) {
      if (std::ranges::find(known->ranks, ranks_[rank].rank) == known->ranks.end())
        known->ranks.push_back(ranks_[rank].rank);
      return;
    }
    if (is_same(out_.creator)) return;
    Origin origin;
    origin.rank = ranks_[rank].rank;
    origin.ranks = {origin.rank};
    origin.difference = other;
    origin.target_dump = ranks_[rank].files.target;
    origin.golden_dump = ranks_[rank].files.golden;
    out_.others.push_back(std::move(origin));
  }
  static bool IsLike(const Root& a, const Root& b) {
    return a.difference->kind == b.difference->kind && a.difference->name == b.difference->name;
  }

  bool IsOrigin(int rank) const {
    const auto holds = [&](const Origin& o) {
      return std::find(o.ranks.begin(), o.ranks.end(), rank) != o.ranks.end();
    };
    return holds(out_.creator) || std::any_of(out_.others.begin(), out_.others.end(), holds);
  }

  void AddHandovers() {
    std::vector<std::pair<CommTime, Handover>> found;
    for (size_t r = 0; r < ranks_.size(); ++r) {
      const BigArray<uint8_t>& marks = ranks_[r].marks;
      const size_t first = static_cast<size_t>(
          std::find_if(marks.begin(), marks.end(), [](uint8_t m) { return m != 0; }) - marks.begin());
      if (first == marks.size() || IsOrigin(ranks_[r].rank)) continue;
      Handover h;
      h.rank = ranks_[r].rank;
      if (IsReceived(r)) {
        h.from = {ranks_[giver_of_[r]].rank};
        h.op = ranks_[r].differences.Answer().name;
      }
      CommTime time = graph_.TimeOf(r, first);
      // The first call that brought something else than in the golden run.
      for (size_t c = graph_.ranks[r].CallFrom(first); IsCall(r, c); ++c) {
        h.from = GuiltyGivers(r, c);
        if (h.from.empty()) continue;
        h.op = graph_.ranks[r].calls[c].name;
        time = graph_.TimeOf(r, graph_.ranks[r].calls[c].op);
        break;
      }
      found.emplace_back(time, std::move(h));
    }
    std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
      return std::tuple(a.first, a.second.rank) < std::tuple(b.first, b.second.rank);
    });
    for (auto& [time, h] : found) out_.handovers.push_back(std::move(h));
  }

  /// What a rank calls a beginning is one only at an origin, or where no origin can have reached it.
  bool IsCarrier(size_t rank, const BegunOp& begun, const std::vector<size_t>& reached) const {
    return Begins(begun.verdict) && !IsOrigin(ranks_[rank].rank) && begun.op >= reached[rank];
  }
  void AddCarriers(const std::vector<size_t>& reached) {
    for (size_t r = 0; r < ranks_.size(); ++r) {
      for (const BegunOp& begun : ranks_[r].begun) {
        if (IsCarrier(r, begun, reached)) out_.carriers.push_back({ranks_[r].files.target, begun});
      }
    }
  }

  /// All ops whose verdict is that they inherit, once all ranks are known.
  void AddInfection(const Root& main, const std::vector<size_t>& reached) {
    struct Place {
      CommTime time;
      uint32_t rank, group;
    };
    size_t groups = 0;
    for (const RankFindings& rank : ranks_) groups += rank.infected.size();
    std::vector<Place> all;  // groups of a thousand ranks are many: they stay where they are until they are in order
    all.reserve(groups);
    for (size_t r = 0; r < ranks_.size(); ++r) {
      for (const BegunOp& begun : ranks_[r].begun) {
        if (Begins(begun.verdict) && !IsCarrier(r, begun, reached)) --ranks_[r].infected[begun.group].ops;
      }
      uint64_t ops = 0;
      for (size_t i = 0; i < ranks_[r].infected.size(); ++i) {
        const InfectedGroup& g = ranks_[r].infected[i];
        if (g.ops == 0) continue;
        ops += g.ops;
        (g.backward ? out_.infected_backward : out_.infected_forward) += g.ops;
        all.push_back({graph_.TimeOf(r, g.first_op), static_cast<uint32_t>(r), static_cast<uint32_t>(i)});
      }
      if (ops > 0) out_.infected_by_rank.emplace_back(ranks_[r].rank, ops);
    }
    out_.infected_ops = out_.infected_forward + out_.infected_backward;
    // What follows from the creator comes first.
    std::sort(all.begin(), all.end(), [&](const Place& a, const Place& b) {
      return std::tuple(a.time < main.time, a.time, a.rank, a.group) <
             std::tuple(b.time < main.time, b.time, b.rank, b.group);
    });
    out_.infected_groups = all.size();
    for (const Place& p : all) {
      const InfectedGroup& g = ranks_[p.rank].infected[p.group];
      if (out_.infected.size() < kGroupsKept) out_.infected.push_back(g);
      if (!g.module.empty()) AddModule(g);
    }
  }

  /// The ranks of a group of modules mostly tell the same.
  void AddModule(const InfectedGroup& g) {
    const auto is_same = [&](const auto& known) {
      const std::string_view name = known.first;
      return g.backward ? name.size() == g.module.text().size() + kBackward.size() &&
                              name.starts_with(g.module.text()) && name.ends_with(kBackward)
                        : name == g.module.text();
    };
    auto& modules = out_.infected_modules;
    const auto known = std::ranges::find_if(modules, is_same);
    if (known != modules.end()) {
      known->second += g.ops;
    } else if (modules.size() < kModulesKept) {
      modules.emplace_back(g.module.text() + std::string(g.backward ? kBackward : ""), g.ops);
    } else {
      out_.more_modules = true;
    }
  }

  void AddEvidence(const Root& main, const std::vector<size_t>& reached) {
    const size_t call = CallAt(main.rank, main.op);
    if (main.collective && IsCall(main.rank, call)) {
      std::vector<int> givers{ranks_[main.rank].rank}, apart, missing;
      for (const CommPart& part : graph_.ranks[main.rank].calls[call].parts) {
        const CommEvent& event = graph_.events[part.event];
        missing.insert(missing.end(), event.missing.begin(), event.missing.end());
        for (const CommMember& m : event.members) {
          if (m.gives && m.rank != main.rank) givers.push_back(ranks_[m.rank].rank);
          if (m.takes && (MarkOf(m) & RankFindings::kEndsApart)) apart.push_back(ranks_[m.rank].rank);
        }
      }
      std::sort(givers.begin(), givers.end());
      givers.erase(std::unique(givers.begin(), givers.end()), givers.end());
      if (missing.empty()) {
        out_.evidence.push_back("what " + RanksText(givers) + " put into the call agrees with the golden run");
      } else {
        out_.evidence.push_back("no dump of " + RanksText(missing) + ", which may have given something else");
      }
      if (!apart.empty()) out_.evidence.push_back("what comes out differs on " + RanksText(apart));
    }
    if (ranks_.size() == 1) return;
    size_t reached_ranks = 0, clean = 0;
    for (size_t r = 0; r < ranks_.size(); ++r) {
      const bool differs = std::any_of(ranks_[r].marks.begin(), ranks_[r].marks.end(), [](uint8_t m) { return m; });
      clean += !differs;
      reached_ranks += r != main.rank && reached[r] < graph_.ranks[r].ops;
    }
    out_.evidence.push_back(
        fmt::format("its values reach {} of {} further ranks through communication", reached_ranks, ranks_.size() - 1));
    if (clean > 0) out_.evidence.push_back(fmt::format("{} of {} ranks agree throughout", clean, ranks_.size()));
  }

  std::vector<RankFindings> ranks_;
  CommGraph graph_;
  std::vector<size_t> giver_of_;  // for each rank the one that gave what its difference came in with
  std::vector<Root> roots_;
  Divergence out_;
};

}  // namespace

StatusOr<Divergence> FindDivergence(int step, std::vector<RankFindings> ranks) {
  return Finder(step, std::move(ranks)).Run();
}

}  // namespace msprobe
