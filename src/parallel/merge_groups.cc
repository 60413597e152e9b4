#include "parallel/merge_groups.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <set>

#include "base/message.h"
#include "base/text.h"
#include "dump/flatten.h"
#include "dump/group_name.h"
#include "ops/collective.h"

namespace msprobe {
namespace {

using Groups = std::vector<std::vector<int>>;

constexpr size_t kReducesToRead = 256;  // the groups of a run are all among its first calls
constexpr std::array<const char*, 5> kDims{"tp", "cp", "ep", "dp", "pp"};

std::vector<std::string> DimsOf(const std::string& order) {
  std::vector<std::string> out;
  for (size_t begin = 0; begin <= order.size();) {
    const size_t end = std::min(order.find('-', begin), order.size());
    out.push_back(order.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

int DataParallel(const ParallelLayout& s) { return s.rank_size / (s.tp * s.pp * s.cp * s.ep); }

int SizeOf(const ParallelLayout& s, const std::string& dim) {
  if (dim == "tp") return s.tp;
  if (dim == "cp") return s.cp;
  if (dim == "ep") return s.ep;
  if (dim == "pp") return s.pp;
  return DataParallel(s);
}

using Coordinates = std::map<std::string, int>;

Coordinates CoordinatesOf(const ParallelLayout& s, int rank) {
  Coordinates out;
  for (const char* dim : kDims) out[dim] = 0;
  for (const std::string& dim : DimsOf(s.order)) {
    const int size = SizeOf(s, dim);
    out[dim] = rank % size;
    rank /= size;
  }
  return out;
}

bool IsReduce(std::string_view name) {
  const std::string_view api = CommFunction(name);
  return Contains(api, "all_reduce") || Contains(api, "reduce_scatter");
}

int IntOf(const JsonValue* v) { return v && v->IsInt32() ? v->Int32() : -1; }

int SendTarget(const JsonValue& op, std::string_view name, int rank) {
  if (const JsonValue* to = AttributeOf(op, "dest_rank")) return IntOf(to->Find("value"));
  std::vector<Item> items;
  FlattenOp(name, op, &items);
  for (const Item& item : items) {
    if (!item.leaf || !item.leaf->IsObject()) continue;
    if (const JsonValue* kind = item.leaf->Find("op"); kind && kind->IsString()) {
      const int peer = IntOf(item.leaf->Find("peer"));
      if (kind->Text() == "isend" && peer >= 0 && peer != rank) return peer;
    } else if (item.suffix == ".input.dst" || (item.suffix == ".input.1" && !Contains(name, "batch_isend_irecv"))) {
      return IntOf(item.leaf->Find("value"));
    }
  }
  return -1;
}

/// Every rank once, groups of the wanted size.
bool IsPartition(const Groups& groups, size_t size, int ranks) {
  std::set<int> seen;
  for (const auto& group : groups) {
    if (group.size() != size) return false;
    for (int r : group)
      if (r < 0 || r >= ranks || !seen.insert(r).second) return false;
  }
  return seen.size() == static_cast<size_t>(ranks);
}

/// The groups of each rank, those that only have a name with the ranks that have it.
std::vector<Groups> NamedReduces(const std::vector<RankHints>& hints) {
  std::map<std::string_view, std::vector<int>> members;
  for (const RankHints& rank : hints) {
    for (const std::string& name : rank.names) members[name].push_back(rank.rank);
  }
  for (auto& [name, ranks] : members) std::sort(ranks.begin(), ranks.end());
  std::vector<Groups> out;
  for (const RankHints& rank : hints) {
    Groups& own = out.emplace_back(rank.reduces);
    for (size_t i = 0; i < std::min(own.size(), rank.names.size()); ++i) {
      if (own[i].empty()) own[i] = members[rank.names[i]];
    }
  }
  return out;
}

Groups RecordedTp(const ParallelLayout& s, const std::vector<RankHints>& hints, bool* any) {
  Groups out;
  *any = false;
  const std::vector<Groups> named = NamedReduces(hints);
  for (size_t rank = 0; rank < named.size(); ++rank) {
    // That of most calls, of several the first: one call over a wrong group tells nothing of the layout.
    const Groups& reduces = named[rank];
    *any |= !reduces.empty();
    size_t best = reduces.size();
    for (size_t i = 0; i < reduces.size(); ++i) {
      const std::vector<size_t>& calls = hints[rank].calls;
      if (reduces[i].size() != static_cast<size_t>(s.tp)) continue;
      if (best == reduces.size() || (i < calls.size() && calls[i] > calls[best])) best = i;
    }
    if (best == reduces.size()) continue;
    if (std::find(out.begin(), out.end(), reduces[best]) == out.end()) out.push_back(reduces[best]);
  }
  return out;
}

// Follows who sends to whom until a stage sends to none or back.
Groups RecordedPp(const std::vector<RankHints>& hints, bool* any) {
  std::map<int, int> next;
  std::set<int> targets;
  for (const RankHints& rank : hints) {
    if (rank.sends_to < 0) continue;
    next[rank.rank] = rank.sends_to;
  }
  *any = !next.empty();
  Groups out;
  std::set<int> seen;
  for (const auto& [first, unused] : next) {
    std::vector<int> chain;
    int at = first;
    while (at >= 0 && !seen.contains(at)) {
      chain.push_back(at);
      seen.insert(at);
      const auto it = next.find(at);
      at = it == next.end() ? -1 : it->second;
    }
    if (!chain.empty()) out.push_back(std::move(chain));
  }
  return out;
}

void FromData(const ParallelLayout& s, const std::vector<RankHints>& hints, MergeGroups* out) {
  bool any = false;
  if (s.tp > 1) {
    const Groups tp = RecordedTp(s, hints, &any);
    if (IsPartition(tp, static_cast<size_t>(s.tp), s.rank_size)) {
      out->tp_recorded = true;
      out->tp = tp;
    } else if (any) {
      out->warnings.push_back(
          Msg("the groups of the recorded all_reduce and reduce_scatter calls do not divide {} ranks into groups of "
              "{}: tensor parallel groups follow --order {}",
              s.rank_size, s.tp, s.order));
    }
  }
  if (s.pp > 1) {
    const Groups pp = RecordedPp(hints, &any);
    if (IsPartition(pp, static_cast<size_t>(s.pp), s.rank_size)) {
      out->pp_recorded = true;
      out->pp = pp;
    } else if (any) {
      out->warnings.push_back(
          Msg("the recorded sends do not chain {} ranks into pipelines of {} stages: pipeline groups follow --order {}",
              s.rank_size, s.pp, s.order));
    }
  }
}

const std::vector<int>& GroupWith(const Groups& groups, int rank) {
  for (const auto& group : groups)
    if (std::find(group.begin(), group.end(), rank) != group.end()) return group;
  return groups.front();
}

std::set<std::set<int>> AsSets(const Groups& groups) {
  std::set<std::set<int>> out;
  for (const auto& g : groups) out.emplace(g.begin(), g.end());
  return out;
}

// One unit per value of the dp coordinate; the grid by coordinates.
std::vector<MergeUnit> UnitsByOrder(const ParallelLayout& s) {
  std::vector<MergeUnit> units(static_cast<size_t>(DataParallel(s)));
  for (MergeUnit& unit : units)
    unit.stages.assign(static_cast<size_t>(s.pp), std::vector<int>(static_cast<size_t>(s.tp * s.cp * s.ep)));
  for (int rank = 0; rank < s.rank_size; ++rank) {
    Coordinates at = CoordinatesOf(s, rank);
    const int cell = at["tp"] + s.tp * (at["cp"] + s.cp * at["ep"]);
    units[static_cast<size_t>(at["dp"])].stages[static_cast<size_t>(at["pp"])][static_cast<size_t>(cell)] = rank;
  }
  return units;
}

/// Which share of the experts each cell holds, by the groups that exchange tokens; nothing where stages differ in it.
std::vector<int> SharesOf(const MergeUnit& unit, const Groups& ep, size_t shares) {
  std::vector<int> out;
  for (const std::vector<int>& stage : unit.stages) {
    std::vector<int> own;
    for (const int rank : stage) {
      const std::vector<int>& group = GroupWith(ep, rank);
      own.push_back(static_cast<int>(std::find(group.begin(), group.end(), rank) - group.begin()));
    }
    if (!out.empty() && own != out) return {};
    out = std::move(own);
  }
  for (size_t share = 0; share < shares; ++share) {
    if (static_cast<size_t>(std::ranges::count(out, static_cast<int>(share))) != out.size() / shares) return {};
  }
  return out;
}

/// Ranks one after the other, as they lie where experts have no tensor parallelism.
std::vector<int> SharesInTurn(const MergeUnit& unit, int shares) {
  std::vector<int> out(unit.stages[0].size());
  for (size_t cell = 0; cell < out.size(); ++cell) out[cell] = static_cast<int>(cell) % shares;
  return out;
}

/// The groups in which most calls exchange tokens, where they divide all ranks.
Groups RecordedEp(const ParallelLayout& s, const std::vector<RankHints>& hints) {
  Groups out;
  for (const RankHints& rank : hints) {
    const std::vector<int>* most = nullptr;
    for (const auto& [group, calls] : rank.exchanges) {
      if (group.size() == static_cast<size_t>(s.ep) && (!most || calls > rank.exchanges.at(*most))) most = &group;
    }
    if (most && std::find(out.begin(), out.end(), *most) == out.end()) out.push_back(*most);
  }
  return IsPartition(out, static_cast<size_t>(s.ep), s.rank_size) ? out : Groups();
}

void PlaceExperts(const ParallelLayout& s, const std::vector<RankHints>& hints, MergeGroups* out) {
  const bool fits = GridOf(s).ep == s.ep;
  Groups ep = RecordedEp(s, hints);
  for (MergeUnit& unit : out->units) unit.share_count = s.ep;
  if (fits && (ep.empty() || AsSets(ep) == AsSets(GroupsByOrder(s, {"ep"})))) return;
  std::vector<std::vector<int>> shares;
  for (const MergeUnit& unit : out->units) {
    std::vector<int>& of = shares.emplace_back();
    if (!ep.empty()) of = SharesOf(unit, ep, static_cast<size_t>(s.ep));
    if (of.empty() && !fits) of = SharesInTurn(unit, s.ep);
    if (!of.empty()) continue;
    out->warnings.push_back(
        Msg("the recorded all_to_all calls exchange tokens over other ranks ({}) than --order {} tells: experts are "
            "merged by the order",
            ep, s.order));
    return;
  }
  for (size_t i = 0; i < shares.size(); ++i) out->units[i].shares = std::move(shares[i]);
  out->ep = std::move(ep);
}

// With tensor and pipeline parallelism alone, whatever groups were found: a tensor parallel group of first stages.
std::vector<MergeUnit> UnitsOfGroups(const ParallelLayout& s, const Groups& tp, const Groups& pp) {
  std::vector<MergeUnit> units;
  std::set<int> done;
  for (const auto& chain : pp) {
    if (done.contains(chain[0])) continue;
    MergeUnit unit;
    unit.stages.resize(static_cast<size_t>(s.pp));
    for (int first : GroupWith(tp, chain[0])) {
      const std::vector<int>& other = GroupWith(pp, first);
      if (other[0] != first || !done.insert(first).second) return {};
      for (size_t stage = 0; stage < other.size(); ++stage) unit.stages[stage].push_back(other[stage]);
    }
    units.push_back(std::move(unit));
  }
  return units;
}

}  // namespace

Status CheckMergeSettings(const ParallelLayout& s, const char* side) {
  for (const auto& [name, value] : {std::pair<const char*, int>{"--rank_size", s.rank_size},
                                    {"--tp", s.tp},
                                    {"--pp", s.pp},
                                    {"--vpp", s.vpp},
                                    {"--cp", s.cp},
                                    {"--ep", s.ep}}) {
    if (value < 1) return UsageError(Msg("{} of the {} run is {}: give a number from 1", name, side, value));
    if (value > 1 << 20)
      return UsageError(Msg("{} of the {} run is {}: more ranks than any run has", name, side, value));
  }
  int64_t parts = 1;
  for (const int size : {s.tp, s.pp, s.cp}) parts = std::min(parts * size, int64_t{s.rank_size} + 1);
  if (s.rank_size % parts != 0 || s.rank_size / s.pp % s.ep != 0) {
    return UsageError(Msg(
        "--rank_size {} of the {} run is not a multiple of tp {} x pp {} x cp {} x ep {}: give the sizes it ran with",
        s.rank_size, side, s.tp, s.pp, s.cp, s.ep));
  }
  if (s.vpp > 1 && s.pp == 1) return UsageError(Msg("--vpp {} of the {} run needs --pp of at least 2", s.vpp, side));
  const std::vector<std::string> dims = DimsOf(s.order);
  std::set<std::string> seen;
  for (const std::string& dim : dims) {
    const bool known = std::find(kDims.begin(), kDims.end(), dim) != kDims.end();
    if (known && seen.insert(dim).second) continue;
    return UsageError(known
                          ? Msg("--order \"{}\" of the {} run: twice \"{}\", expected each of tp, cp, ep, dp, pp once, "
                                "like tp-cp-ep-dp-pp",
                                OneLine(s.order), KnownText(side), OneLine(dim))
                          : Msg("--order \"{}\" of the {} run: unknown \"{}\", expected each of tp, cp, ep, dp, pp "
                                "once, like tp-cp-ep-dp-pp",
                                OneLine(s.order), KnownText(side), OneLine(dim)));
  }
  for (const char* dim : kDims) {
    const int size = SizeOf(GridOf(s), dim);
    if (seen.contains(dim) || size == 1) continue;
    return UsageError(Msg("--order \"{}\" of the {} run lacks {}, whose size is {}: add it", s.order, side, dim, size));
  }
  return OkStatus();
}

ParallelLayout GridOf(const ParallelLayout& settings) {
  ParallelLayout out = settings;
  out.ep = std::gcd(settings.rank_size / (settings.tp * settings.pp * settings.cp), settings.ep);
  return out;
}

std::vector<int> RanksOfGroup(const JsonValue& op, std::string_view name) {
  std::vector<Item> items;
  FlattenOp(name, op, &items);
  for (const Item& item : items) {
    const JsonValue* ranks = item.leaf && item.leaf->IsObject() ? item.leaf->Find("group_ranks") : nullptr;
    if (!ranks || !ranks->IsArray() || item.state == ItemState::kOutput) continue;
    std::vector<int> out;
    for (const JsonValue& r : ranks->Items()) out.push_back(IntOf(&r));
    return out;
  }
  return {};
}

RankHints ReadHints(int rank, const DumpFile& dump) {
  RankHints out;
  out.rank = rank;
  JsonDoc doc;
  size_t reduces = 0, exchanges = 0;
  for (size_t i = 0; i < dump.ops().size(); ++i) {
    const std::string_view name = dump.ops()[i].name;
    if (!IsCommunication(name)) continue;
    const bool reduce = reduces < kReducesToRead && IsReduce(name);
    const std::string_view api = CommFunction(name);
    const bool exchange = exchanges < kReducesToRead && Contains(api, "all_to_all");
    const bool send = out.sends_to < 0 && (api == "batch_isend_irecv" || api == "send" || api == "isend");
    if ((!reduce && !send && !exchange) || !dump.ParseOp(i, &doc).ok())
      continue;  // what cannot be read is reported later
    if (send) out.sends_to = SendTarget(doc, name, rank);
    if (!reduce && !exchange) continue;
    std::vector<int> group = RanksOfGroup(doc, name);
    if (exchange) {
      ++exchanges;
      if (!group.empty()) ++out.exchanges[std::move(group)];
      continue;
    }
    ++reduces;
    std::string text = group.empty() ? GroupNameOf(doc) : "";
    if (group.empty() && text.empty()) continue;
    const size_t at = static_cast<size_t>(
        group.empty() ? std::find(out.names.begin(), out.names.end(), text) - out.names.begin()
                      : std::find(out.reduces.begin(), out.reduces.end(), group) - out.reduces.begin());
    if (at < out.calls.size()) {
      ++out.calls[at];
      continue;
    }
    out.reduces.push_back(std::move(group));
    out.names.push_back(std::move(text));
    out.calls.push_back(1);
  }
  return out;
}

std::vector<std::vector<int>> GroupsByOrder(const ParallelLayout& settings, const std::vector<std::string>& along) {
  std::map<std::vector<int>, std::vector<int>> groups;  // by the other coordinates, slowest first
  const std::vector<std::string> dims = DimsOf(settings.order);
  for (int rank = 0; rank < settings.rank_size; ++rank) {
    const Coordinates at = CoordinatesOf(settings, rank);
    std::vector<int> key;
    for (auto dim = dims.rbegin(); dim != dims.rend(); ++dim)
      if (std::find(along.begin(), along.end(), *dim) == along.end()) key.push_back(at.at(*dim));
    groups[key].push_back(rank);
  }
  Groups out;
  for (auto& [key, ranks] : groups) out.push_back(std::move(ranks));
  return out;
}

MergeGroups FindMergeGroups(const ParallelLayout& given, const std::vector<RankHints>& hints) {
  const ParallelLayout settings = GridOf(given);
  MergeGroups out;
  FromData(settings, hints, &out);
  const Groups tp = GroupsByOrder(settings, {"tp"}), pp = GroupsByOrder(settings, {"pp"});
  const bool plain = settings.cp == 1 && settings.ep == 1;
  if (!plain &&
      ((out.tp_recorded && AsSets(out.tp) != AsSets(tp)) || (out.pp_recorded && AsSets(out.pp) != AsSets(pp)))) {
    out.warnings.push_back(Msg(
        "the recorded calls group ranks otherwise (tp {}, pp {}) than --order {} does (tp {}, pp {}): check the order",
        out.tp, out.pp, settings.order, tp, pp));
  }
  if (!out.tp_recorded || !plain) out.tp = tp, out.tp_recorded = out.tp_recorded && plain;
  if (!out.pp_recorded || !plain) out.pp = pp, out.pp_recorded = out.pp_recorded && plain;
  if (plain) out.units = UnitsOfGroups(settings, out.tp, out.pp);
  if (out.units.empty()) {
    if (plain) {
      out.warnings.push_back(Msg("the recorded groups (tp {}, pp {}) do not fit together: ranks follow --order {}",
                                 out.tp, out.pp, settings.order));
      out.tp = tp, out.pp = pp, out.tp_recorded = out.pp_recorded = false;
    }
    out.units = UnitsByOrder(settings);
  }
  if (given.ep > 1) PlaceExperts(given, hints, &out);
  return out;
}

}  // namespace msprobe
