#include "diagnose/communication_call.h"

#include <algorithm>
#include <climits>
#include <map>
#include <utility>

#include "base/text.h"
#include "dump/group_name.h"
#include "ops/collective.h"

namespace msprobe {
namespace {

constexpr size_t kMostRanks = 1 << 20;  // in one group: no machine has more

using Flow = CommFlow;

bool AsRank(const JsonValue* v, int* out) {
  if (!v || !v->IsInt32() || v->Int32() < 0) return false;
  *out = v->Int32();
  return true;
}

std::string_view TypeOf(const JsonValue& v) {
  const JsonValue* type = v.Find("type");
  return type && type->IsString() ? type->Text() : std::string_view();
}

/// The arguments of a call by name or, for those without one, by kind.
class Arguments {
 public:
  explicit Arguments(const JsonValue& op) : op_(op) {
    for (const char* key : {"input_args", "input"}) {
      if (const JsonValue* v = op.Find(key); v && v->IsArray() && !args_) args_ = v;
    }
    kwargs_ = op.Find("input_kwargs");
  }

  /// Value of the integer argument `name`.
  bool Named(std::string_view name, int* out) const {
    const JsonValue* v = kwargs_ ? kwargs_->Find(name) : nullptr;
    if (v) return AsRank(v->Find("value"), out);
    for (const auto& [attribute, argument] : kAttributes) {
      v = argument == name ? AttributeOf(op_, attribute) : nullptr;
      if (v) return AsRank(v->Find("value"), out);
    }
    return false;
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
      for (const auto& m : kwargs_->Members()) {
        if (std::vector<int> ranks = RanksOf(m.value); !ranks.empty()) return ranks;
      }
    }
    if (args_) {
      for (const JsonValue& v : args_->Items()) {
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
    for (const JsonValue& v : args_->Items()) {
      if (TypeOf(v) == "int" && skip-- == 0) return AsRank(v.Find("value"), out);
    }
    return false;
  }
  static std::vector<int> RanksOf(const JsonValue& v) {
    std::vector<int> out;
    const JsonValue* ranks = v.Find("group_ranks");
    if (!ranks || !ranks->IsArray() || ranks->size() > kMostRanks) return out;
    for (unsigned i = 0; i < ranks->size(); ++i) {
      int rank = 0;
      if (AsRank(&(*ranks)[i], &rank)) out.push_back(rank);
    }
    return out;
  }
  /// Of objects of MindSpore, and the arguments that they stand for.
  static constexpr std::pair<std::string_view, std::string_view> kAttributes[] = {
      {"src_rank", "src"}, {"root_rank", "src"}, {"dest_rank", "dst"}, {"sr_tag", "tag"}};
  const JsonValue& op_;
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
  for (const JsonValue& entry : list.Items()) {
    if (entry.IsArray()) {
      ReadBatch(entry, out);
      continue;
    }
    const JsonValue* op = entry.Find("op");
    if (!op || !op->IsString()) continue;
    const Flow flow = FlowOf(op->Text());
    CommTransfer t;
    t.kind = CommTransfer::Kind::kPair;
    t.gives = flow == Flow::kSend;
    t.takes = flow == Flow::kReceive;
    AsRank(entry.Find("tag"), &t.tag);
    if ((t.gives || t.takes) && AsRank(entry.Find("peer"), &t.peer)) out->push_back(std::move(t));
  }
}

}  // namespace

void ReadGroup(const JsonValue& op, CommTransfer* out) {
  out->group = Sorted(Arguments(op).Group());
  if (out->group.empty()) out->group_name = GroupNameOf(op);
}

void NameGroups(const std::vector<NamedCalls>& ranks) {
  std::map<std::string_view, std::vector<int>> members;
  for (const NamedCalls& rank : ranks) {
    for (const CommTransfer* t : rank.transfers) {
      if (!t->group_name.empty()) members[t->group_name].push_back(rank.rank);
    }
  }
  for (auto& [name, numbers] : members) numbers = Sorted(std::move(numbers));
  for (const NamedCalls& rank : ranks) {
    for (CommTransfer* t : rank.transfers) {
      if (!t->group_name.empty()) t->group = members[t->group_name];
    }
  }
}

std::vector<CommTransfer> ReadTransfers(std::string_view api, const JsonValue& op, int own_rank) {
  const Arguments args(op);
  const Flow flow = FlowOf(api);
  std::vector<CommTransfer> out;
  if (flow == Flow::kBatch) {
    if (args.args()) ReadBatch(*args.args(), &out);
    if (out.empty() && args.kwargs() && args.kwargs()->IsObject()) {
      for (const auto& m : args.kwargs()->Members()) ReadBatch(m.value, &out);
    }
    return out;
  }
  if (flow == Flow::kNone) return out;
  CommTransfer t;
  const std::vector<int> group = args.Group();
  t.group = Sorted(group);
  // The text of an object that is sent is no group.
  if (group.empty() && !Contains(api, "object")) t.group_name = GroupNameOf(op);
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
