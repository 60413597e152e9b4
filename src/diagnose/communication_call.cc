#include "diagnose/communication_call.h"

#include <algorithm>
#include <array>
#include <climits>

#include "base/text.h"
#include "match/op_name.h"

namespace msprobe {
namespace {

constexpr size_t kMostRanks = 1 << 20;  // in one group: no machine has more

/// How values move in the calls of a family.
struct Family {
  enum class Flow : uint8_t { kNone, kSend, kReceive, kBatch, kFromRoot, kToRoot, kAll };
  std::string_view part;  // of the name
  Flow flow;
};
using Flow = Family::Flow;

/// The first that the name contains decides.
constexpr std::array<Family, 11> kFamilies{{{"barrier", Flow::kNone},
                                            {"batch_isend_irecv", Flow::kBatch},
                                            {"all_reduce", Flow::kAll},
                                            {"all_gather", Flow::kAll},
                                            {"all_to_all", Flow::kAll},
                                            {"reduce_scatter", Flow::kAll},
                                            {"broadcast", Flow::kFromRoot},
                                            {"scatter", Flow::kFromRoot},
                                            {"gather", Flow::kToRoot},
                                            {"reduce", Flow::kToRoot},
                                            {"send", Flow::kSend}}};

Flow FlowOf(std::string_view api) {
  for (const Family& f : kFamilies) {
    if (Contains(api, f.part)) return f.flow;
  }
  return Contains(api, "recv") ? Flow::kReceive : Flow::kNone;
}

bool AsRank(const JsonValue* v, int* out) {
  if (!v || !v->IsInt() || v->GetInt() < 0) return false;
  *out = v->GetInt();
  return true;
}

std::string_view TypeOf(const JsonValue& v) {
  const JsonValue* type = Find(v, "type");
  return type && type->IsString() ? Text(*type) : std::string_view();
}

/// The arguments of a call by name or, for those without one, by kind.
class Arguments {
 public:
  explicit Arguments(const JsonValue& op) {
    for (const char* key : {"input_args", "input"}) {
      if (const JsonValue* v = Find(op, key); v && v->IsArray() && !args_) args_ = v;
    }
    kwargs_ = Find(op, "input_kwargs");
  }

  /// Value of the integer argument `name`.
  bool Named(std::string_view name, int* out) const {
    const JsonValue* v = kwargs_ ? Find(*kwargs_, name) : nullptr;
    return v && AsRank(Find(*v, "value"), out);
  }
  /// The first integer without a name: the other rank or the root, in every call that has one.
  bool FirstInteger(int* out) const { return Integer(0, out); }
  /// The tag of a send or receive.
  bool Tag(int* out) const {
    int named = 0;
    const bool rank_is_named = Named("src", &named) || Named("dst", &named);
    return Named("tag", out) || Integer(rank_is_named ? 0 : 1, out);
  }
  /// Ranks of the process group, in its own order; empty for the default group.
  std::vector<int> Group() const {
    if (kwargs_ && kwargs_->IsObject()) {
      for (const auto& m : kwargs_->GetObject()) {
        if (std::vector<int> ranks = RanksOf(m.value); !ranks.empty()) return ranks;
      }
    }
    if (args_) {
      for (const JsonValue& v : args_->GetArray()) {
        if (std::vector<int> ranks = RanksOf(v); !ranks.empty()) return ranks;
      }
    }
    return {};
  }
  const JsonValue* args() const { return args_; }
  const JsonValue* kwargs() const { return kwargs_; }

 private:
  /// The integer without a name behind `skip` others.
  bool Integer(int skip, int* out) const {
    if (!args_) return false;
    for (const JsonValue& v : args_->GetArray()) {
      if (TypeOf(v) == "int" && skip-- == 0) return AsRank(Find(v, "value"), out);
    }
    return false;
  }
  static std::vector<int> RanksOf(const JsonValue& v) {
    std::vector<int> out;
    const JsonValue* ranks = Find(v, "group_ranks");
    if (!ranks || !ranks->IsArray() || ranks->Size() > kMostRanks) return out;
    for (unsigned i = 0; i < ranks->Size(); ++i) {
      int rank = 0;
      if (AsRank(&(*ranks)[i], &rank)) out.push_back(rank);
    }
    return out;
  }
  const JsonValue* args_ = nullptr;
  const JsonValue* kwargs_ = nullptr;
};

/// The rank that "src", "dst" or a position names; CommTransfer::kUnknown without one.
int RankArgument(const Arguments& args, std::string_view name, const std::vector<int>& group) {
  int rank = 0;
  if (args.Named(name, &rank)) return rank;
  for (const std::string& in_group : {"group_" + std::string(name), std::string(name) + "_group"}) {
    if (!args.Named(in_group, &rank)) continue;
    if (group.empty()) return rank;
    return static_cast<size_t>(rank) < group.size() ? group[static_cast<size_t>(rank)] : CommTransfer::kUnknown;
  }
  return args.FirstInteger(&rank) ? rank : CommTransfer::kUnknown;
}

std::vector<int> Sorted(std::vector<int> ranks) {
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

/// The P2POp objects of a batch: one list, at a position or under a name.
void ReadBatch(const JsonValue& list, std::vector<CommTransfer>* out) {
  if (!list.IsArray()) return;
  for (const JsonValue& entry : list.GetArray()) {
    if (entry.IsArray()) {
      ReadBatch(entry, out);
      continue;
    }
    const JsonValue* op = Find(entry, "op");
    if (!op || !op->IsString()) continue;
    const Flow flow = FlowOf(Text(*op));
    CommTransfer t;
    t.kind = CommTransfer::Kind::kPair;
    t.gives = flow == Flow::kSend;
    t.takes = flow == Flow::kReceive;
    AsRank(Find(entry, "tag"), &t.tag);
    if ((t.gives || t.takes) && AsRank(Find(entry, "peer"), &t.peer)) out->push_back(std::move(t));
  }
}

}  // namespace

std::string_view CommApi(std::string_view op_name) {
  const NameParts name = ParseOpName(op_name);
  if (name.direction != OpDirection::kForward) return {};
  if (!StartsWith(op_name, "Distributed.") && !StartsWith(op_name, "MintDistributed.") &&
      !StartsWith(op_name, "communication.comm_func.")) {
    return {};
  }
  const std::string_view api = name.base.substr(name.base.rfind('.') + 1);
  return FlowOf(api) == Flow::kNone ? std::string_view() : api;
}

std::vector<int> ReadGroup(const JsonValue& op) { return Sorted(Arguments(op).Group()); }

std::vector<CommTransfer> ReadTransfers(std::string_view api, const JsonValue& op, int own_rank) {
  const Arguments args(op);
  const Flow flow = FlowOf(api);
  std::vector<CommTransfer> out;
  if (flow == Flow::kBatch) {
    if (args.args()) ReadBatch(*args.args(), &out);
    if (out.empty() && args.kwargs() && args.kwargs()->IsObject()) {
      for (const auto& m : args.kwargs()->GetObject()) ReadBatch(m.value, &out);
    }
    return out;
  }
  if (flow == Flow::kNone) return out;
  CommTransfer t;
  const std::vector<int> group = args.Group();
  t.group = Sorted(group);
  if (flow == Flow::kSend || flow == Flow::kReceive) {
    t.kind = CommTransfer::Kind::kPair;
    t.gives = flow == Flow::kSend;
    t.takes = flow == Flow::kReceive;
    t.peer = RankArgument(args, t.gives ? "dst" : "src", group);
    args.Tag(&t.tag);
  } else if (flow == Flow::kAll) {
    t.gives = t.takes = true;
  } else {
    const bool from_root = flow == Flow::kFromRoot;
    t.root = RankArgument(args, from_root ? "src" : "dst", group);
    // reduce and gather go to rank 0 where nothing else is said, scatter and broadcast start there.
    if (t.root == CommTransfer::kUnknown) t.root = group.empty() ? 0 : group.front();
    t.gives = !from_root || t.root == own_rank;
    t.takes = from_root ? t.root != own_rank : t.root == own_rank;
  }
  out.push_back(std::move(t));
  return out;
}

}  // namespace msprobe
