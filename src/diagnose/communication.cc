#include "diagnose/communication.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/page_trim.h"
#include "base/parallel.h"
#include "ops/collective.h"

namespace msprobe {
namespace {

/// Joins the calls of all ranks to events.
class Joiner {
 public:
  explicit Joiner(CommGraph* graph) : graph_(graph) {
    for (const CommRank& r : graph->ranks) world_.push_back(r.rank);
  }

  void Add(uint32_t rank, const std::vector<std::vector<CommTransfer>>& transfers) {
    // How many of its kind on this rank.
    std::map<PairKey, uint32_t> pairs;
    std::map<GroupKey, uint32_t> groups;
    for (uint32_t c = 0; c < transfers.size(); ++c) {
      for (const CommTransfer& t : transfers[c]) {
        const CommMember member{rank, c, t.gives, t.takes};
        if (t.kind == CommTransfer::Kind::kPair) {
          AddPair(member, t, &pairs);
        } else {
          AddGroup(member, t, &groups);
        }
      }
    }
  }

  /// After all ranks.
  void FindMissing() {
    for (const auto& [key, event] : group_events_) Miss(std::get<0>(key), &graph_->events[event]);
    for (const auto& [key, event] : pair_events_)
      Miss({std::min(std::get<0>(key), std::get<1>(key)), std::max(std::get<0>(key), std::get<1>(key))},
           &graph_->events[event]);
  }

 private:
  // from, to, tag, objects, how many of these came before
  using PairKey = std::tuple<int, int, int, bool, uint32_t>;
  using GroupKey = std::tuple<std::vector<int>, std::string, uint32_t>;

  int NumberOf(uint32_t rank) const { return graph_->ranks[rank].rank; }
  CommCall& CallOf(const CommMember& m) { return graph_->ranks[m.rank].calls[m.call]; }

  void AddPair(const CommMember& member, const CommTransfer& t, std::map<PairKey, uint32_t>* counts) {
    if (t.peer == CommTransfer::kUnknown) return;
    const int own = NumberOf(member.rank);
    const bool objects = CallOf(member).api.find("object") != std::string_view::npos;
    PairKey key{t.gives ? own : t.peer, t.gives ? t.peer : own, t.tag, objects, 0};
    // A rank that sends to itself meets both ends of the pair; the direction tells them apart.
    PairKey counted = key;
    std::get<4>(counted) = t.gives;
    std::get<4>(key) = (*counts)[counted]++;
    Join(member, &pair_events_, std::move(key));
  }

  void AddGroup(const CommMember& member, const CommTransfer& t, std::map<GroupKey, uint32_t>* counts) {
    GroupKey key{t.group.empty() ? world_ : t.group, CallOf(member).api, 0};
    std::get<2>(key) = (*counts)[key]++;
    Join(member, &group_events_, std::move(key));
  }

  template <typename Key>
  void Join(const CommMember& member, std::map<Key, uint32_t>* events, Key key) {
    const auto [it, fresh] = events->emplace(std::move(key), static_cast<uint32_t>(graph_->events.size()));
    if (fresh) graph_->events.emplace_back();
    graph_->events[it->second].members.push_back(member);
    CallOf(member).parts.push_back({it->second, member.gives, member.takes});
  }

  /// `expected` in ascending order, as the members are.
  void Miss(const std::vector<int>& expected, CommEvent* event) const {
    size_t m = 0;
    for (const int rank : expected) {
      while (m < event->members.size() && NumberOf(event->members[m].rank) < rank) ++m;
      if (m == event->members.size() || NumberOf(event->members[m].rank) != rank) event->missing.push_back(rank);
    }
  }

  CommGraph* graph_;
  std::vector<int> world_;
  std::map<PairKey, uint32_t> pair_events_;
  std::map<GroupKey, uint32_t> group_events_;
};

/// Numbers the layers: strongly connected calls (those of one all_reduce) are one step in time, each step is later than
/// those it depends on. Tarjan's algorithm with a stack of its own, since chains are long.
class LayerNumbers {
 public:
  explicit LayerNumbers(CommGraph* graph) : graph_(graph) {
    for (const CommRank& r : graph->ranks) {
      first_.push_back(nodes_);
      nodes_ += static_cast<uint32_t>(r.calls.size());
    }
    events_from_ = nodes_;
    nodes_ += static_cast<uint32_t>(graph->events.size());
    rank_of_.resize(events_from_);
    for (uint32_t r = 0; r < first_.size(); ++r)
      std::fill_n(rank_of_.begin() + first_[r], graph->ranks[r].calls.size(), r);
  }

  void Run() {
    index_.assign(nodes_, 0);
    low_.assign(nodes_, 0);
    part_.assign(nodes_, kNone);
    for (uint32_t n = 0; n < nodes_; ++n) {
      if (index_[n] == 0) Visit(n);
    }
    // Parts are numbered from the last in time to the first.
    std::vector<uint32_t> order(nodes_), layer(parts_, 0);
    for (uint32_t n = 0; n < nodes_; ++n) order[n] = n;
    for (uint32_t n = 0; n < events_from_; ++n) layer[part_[n]] = 1;
    std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return part_[a] > part_[b]; });
    for (const uint32_t n : order) {
      for (uint32_t k = 0, to = 0; Next(n, k, &to); ++k) {
        if (part_[to] == part_[n]) continue;
        const uint32_t step = to < events_from_ ? 1 : 0;  // an event is no later than those who give
        layer[part_[to]] = std::max(layer[part_[to]], layer[part_[n]] + step);
      }
    }
    for (uint32_t n = 0; n < events_from_; ++n) CallOf(n).layer = layer[part_[n]];
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  CommCall& CallOf(uint32_t node) { return graph_->ranks[rank_of_[node]].calls[node - first_[rank_of_[node]]]; }

  /// The k-th edge of a node: from a call to the next call and to the events it gives to, from an event to those who
  /// take.
  bool Next(uint32_t n, uint32_t k, uint32_t* to) {
    if (n >= events_from_) {
      const std::vector<CommMember>& members = graph_->events[n - events_from_].members;
      if (k >= members.size()) return false;
      *to = members[k].takes ? first_[members[k].rank] + members[k].call : n;
      return true;
    }
    const CommCall& call = CallOf(n);
    if (k < call.parts.size()) {
      *to = call.parts[k].gives ? events_from_ + call.parts[k].event : n;
      return true;
    }
    const uint32_t rank = rank_of_[n];
    *to = n + 1;
    return k == call.parts.size() && n + 1 - first_[rank] < graph_->ranks[rank].calls.size();
  }

  void Visit(uint32_t root) {
    struct Frame {
      uint32_t node, edge;
    };
    std::vector<Frame> frames{{root, 0}};
    while (!frames.empty()) {
      const uint32_t n = frames.back().node;
      if (frames.back().edge == 0 && index_[n] == 0) {
        index_[n] = low_[n] = ++count_;
        open_.push_back(n);
      }
      uint32_t to = 0;
      if (Next(n, frames.back().edge, &to)) {
        ++frames.back().edge;
        if (index_[to] == 0) {
          frames.push_back({to, 0});
        } else if (part_[to] == kNone) {
          low_[n] = std::min(low_[n], index_[to]);
        }
        continue;
      }
      frames.pop_back();
      if (!frames.empty()) low_[frames.back().node] = std::min(low_[frames.back().node], low_[n]);
      if (low_[n] == index_[n]) Close(n);
    }
  }

  void Close(uint32_t n) {
    for (uint32_t m = kNone; m != n;) {
      m = open_.back();
      open_.pop_back();
      part_[m] = parts_;
    }
    ++parts_;
  }

  CommGraph* graph_;
  std::vector<uint32_t> first_, rank_of_;
  uint32_t nodes_ = 0, events_from_ = 0, count_ = 0, parts_ = 0;
  std::vector<uint32_t> index_, low_, part_, open_;
};

std::vector<CommMember> Partners(const CommGraph& graph, size_t rank, size_t call, bool givers) {
  std::vector<CommMember> out;
  for (const CommPart& part : graph.ranks[rank].calls[call].parts) {
    if (givers ? !part.takes : !part.gives) continue;
    for (const CommMember& m : graph.events[part.event].members) {
      if (m.rank != rank && (givers ? m.gives : m.takes)) out.push_back(m);
    }
  }
  return out;
}

}  // namespace

size_t CommRank::CallFrom(size_t op) const {
  const auto it =
      std::lower_bound(calls.begin(), calls.end(), op, [](const CommCall& c, size_t value) { return c.op < value; });
  return static_cast<size_t>(it - calls.begin());
}

size_t CommGraph::IndexOf(int rank) const {
  const auto it =
      std::lower_bound(ranks.begin(), ranks.end(), rank, [](const CommRank& r, int value) { return r.rank < value; });
  return it == ranks.end() || it->rank != rank ? kNoRank : static_cast<size_t>(it - ranks.begin());
}

CommTime CommGraph::TimeOf(size_t rank, size_t op) const {
  const CommRank& r = ranks[rank];
  const size_t behind = r.CallFrom(op + 1);
  if (behind == 0) return {0, op + 1};
  const CommCall& call = r.calls[behind - 1];
  return {call.layer, op - call.op};
}

std::vector<size_t> CommGraph::ReachedFrom(size_t rank, size_t op) const {
  std::vector<size_t> reached, followed;  // first op; first call whose takers are known
  for (const CommRank& r : ranks) {
    reached.push_back(r.ops);
    followed.push_back(r.calls.size());
  }
  std::vector<bool> seen(events.size());
  // The op itself may be a call: others take what it gives.
  reached[rank] = op;
  std::vector<size_t> todo{rank};
  while (!todo.empty()) {
    const size_t r = todo.back();
    todo.pop_back();
    const size_t end = followed[r];
    const size_t from = ranks[r].CallFrom(reached[r]);
    followed[r] = std::min(end, from);
    for (size_t c = from; c < end; ++c) {
      for (const CommPart& part : ranks[r].calls[c].parts) {
        // A rank that gave before took part already, so once is enough for an event.
        if (!part.gives || seen[part.event]) continue;
        seen[part.event] = true;
        for (const CommMember& m : events[part.event].members) {
          const size_t at = ranks[m.rank].calls[m.call].op;
          if (m.rank == r || !m.takes || at >= reached[m.rank]) continue;
          reached[m.rank] = at;
          todo.push_back(m.rank);
        }
      }
    }
  }
  ++reached[rank];
  return reached;
}

std::vector<CommMember> CommGraph::GiversOf(size_t rank, size_t call) const {
  return Partners(*this, rank, call, true);
}

std::vector<CommMember> CommGraph::TakersOf(size_t rank, size_t call) const {
  return Partners(*this, rank, call, false);
}

StatusOr<RankCalls> ReadCalls(int rank, const DumpFile& dump) {
  RankCalls out;
  out.rank.rank = rank;
  const OpList& ops = dump.ops();
  out.rank.ops = ops.size();
  JsonDoc doc;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (i % kStepsBetweenTrims == 0) TrimMaps();
    const std::string_view api = CommApi(ops.NameAt(i));
    if (api.empty()) continue;
    MSP_RETURN_IF_ERROR(dump.ParseOp(i, &doc));
    CommCall call;
    call.op = i;
    call.name = ops.NameAt(i);
    call.api = api;
    out.transfers.push_back(ReadTransfers(api, doc, rank));
    out.rank.calls.push_back(std::move(call));
  }
  return out;
}

RankCalls SameCallsOf(const RankCalls& calls, int rank) {
  RankCalls out = calls;
  out.rank.rank = rank;
  for (std::vector<CommTransfer>& call : out.transfers) {
    for (CommTransfer& t : call) {
      if (t.kind != CommTransfer::Kind::kGroup || t.root == CommTransfer::kUnknown) continue;
      const bool from_root = t.root == calls.rank.rank ? !t.takes : t.takes;
      t.gives = !from_root || t.root == rank;
      t.takes = (t.root == rank) != from_root;
    }
  }
  return out;
}

CommGraph JoinCalls(std::vector<RankCalls> ranks) {
  std::sort(ranks.begin(), ranks.end(),
            [](const RankCalls& a, const RankCalls& b) { return a.rank.rank < b.rank.rank; });
  std::vector<NamedCalls> named;
  for (RankCalls& r : ranks) {
    named.push_back({r.rank.rank, {}});
    for (std::vector<CommTransfer>& call : r.transfers) {
      for (CommTransfer& t : call) named.back().transfers.push_back(&t);
    }
  }
  NameGroups(named);
  CommGraph graph;
  for (RankCalls& r : ranks) graph.ranks.push_back(std::move(r.rank));
  Joiner joiner(&graph);
  for (uint32_t r = 0; r < ranks.size(); ++r) joiner.Add(r, ranks[r].transfers);
  joiner.FindMissing();
  LayerNumbers(&graph).Run();
  return graph;
}

StatusOr<CommGraph> ReadCommunication(std::vector<RankDump> dumps) {
  std::vector<RankCalls> ranks(dumps.size());
  MSP_RETURN_IF_ERROR(ParallelFor(dumps.size(), [&](size_t i) -> Status {
    MSP_ASSIGN_OR_RETURN(ranks[i], ReadCalls(dumps[i].rank, *dumps[i].dump));
    return OkStatus();
  }));
  return JoinCalls(std::move(ranks));
}

}  // namespace msprobe
