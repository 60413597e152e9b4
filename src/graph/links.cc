#include "graph/links.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <unordered_map>

#include "base/text.h"
#include "graph/node_graph.h"

namespace msprobe {
namespace {

constexpr std::string_view kBatch = "batch_isend_irecv";

/// How a call names its partner. Calls that are not listed talk to the whole group.
struct Rule {
  std::string_view api, partner, argument, type;
  bool point_to_point;
};
constexpr std::array<Rule, 8> kRules{{{"send", "recv", "dst", "send", true},
                                      {"isend", "irecv", "dst", "send", true},
                                      {"recv", "send", "src", "receive", true},
                                      {"irecv", "isend", "src", "receive", true},
                                      {"broadcast", "broadcast", "1", "send", false},
                                      {"scatter", "scatter", "src", "send", false},
                                      {"gather", "gather", "dst", "receive", false},
                                      {"reduce", "reduce", "1", "receive", false}}};

const Rule* RuleOf(std::string_view api) {
  const auto it = std::find_if(kRules.begin(), kRules.end(), [&](const Rule& r) { return r.api == api; });
  return it == kRules.end() ? nullptr : &*it;
}

std::string_view Opposite(std::string_view type) {
  return type == "send" ? "receive" : type == "receive" ? "send" : type;
}

const Value* FieldOf(const ParamList& params, std::string_view name, std::string_view key) {
  for (size_t i = 0; i < params.size(); ++i) {
    if (params[i].is_output() || params[i].name != name) continue;
    for (const Field& f : params[i].fields)
      if (f.key == key) return &f.value;
    return nullptr;
  }
  return nullptr;
}

std::vector<int64_t> ParseRanks(std::string_view text) {
  std::vector<int64_t> out;
  const char* p = text.data();
  const char* end = p + text.size();
  while (p < end) {
    int64_t v = 0;
    const auto r = std::from_chars(p, end, v);
    if (r.ec == std::errc()) out.push_back(v);
    p = r.ec == std::errc() ? r.ptr : p + 1;
  }
  return out;
}

std::string MemberText(const JsonValue& object, std::string_view key) {
  const JsonValue* v = Find(object, key);
  std::string out;
  if (v && !v->IsNull()) AppendPyStr(out, Value::Of(*v));
  return out;
}

/// The link of one call, before it becomes JSON.
struct Link {
  std::string_view type;
  std::vector<std::pair<std::string, const LinkedCall*>> nodes;  // rank, partner
  bool empty() const { return nodes.empty(); }
};

class Linker {
 public:
  explicit Linker(const std::vector<LinkedRank>& ranks) : ranks_(ranks) {
    for (size_t r = 0; r < ranks.size(); ++r) {
      by_rank_.emplace(std::to_string(ranks[r].rank), r);
      links_.emplace_back(ranks[r].calls.size());
      Name(r);
    }
  }

  std::vector<std::pair<int64_t, std::string>> Run() {
    for (size_t r = 0; r < ranks_.size(); ++r) {
      for (size_t c = 0; c < ranks_[r].calls.size(); ++c) {
        if (!links_[r][c].empty()) continue;
        const LinkedCall& call = ranks_[r].calls[c];
        const Rule* rule = RuleOf(call.api);
        if (call.api == kBatch) {
          LinkBatch(r, c);
        } else if (rule && rule->point_to_point) {
          LinkPair(r, c, *rule);
        } else {
          LinkGroup(r, c, rule);
        }
      }
    }
    std::vector<std::pair<int64_t, std::string>> out;
    for (size_t r = 0; r < ranks_.size(); ++r) {
      for (size_t c = 0; c < ranks_[r].calls.size(); ++c) {
        if (!links_[r][c].empty()) out.emplace_back(ranks_[r].calls[c].row_id, Json(links_[r][c]));
      }
    }
    return out;
  }

 private:
  struct Names {
    std::unordered_map<std::string, size_t> call_of;  // key -> call
    std::vector<std::vector<std::string>> keys;       // of each call; several for a batch
    std::vector<std::vector<int>> counts;
  };

  // Calls that mean the same exchange get the same key on both ranks: kind, group or peer, and the how-many-th it is.
  void Name(size_t r) {
    Names& names = names_.emplace_back();
    names.keys.resize(ranks_[r].calls.size());
    names.counts.resize(ranks_[r].calls.size());
    std::unordered_map<std::string, int> count;
    const auto add = [&](size_t c, const std::string& base) {
      const int k = ++count[base];
      std::string key = base + "_" + std::to_string(k);
      names.call_of[key] = c;
      names.keys[c].push_back(std::move(key));
      names.counts[c].push_back(k);
    };
    for (size_t c = 0; c < ranks_[r].calls.size(); ++c) {
      const LinkedCall& call = ranks_[r].calls[c];
      const Rule* rule = RuleOf(call.api);
      if (call.api == kBatch) {
        for (const P2pOp& op : call.batch) add(c, BatchKey(op.op, op.peer, op.group_id));
      } else if (rule && rule->point_to_point) {
        if (call.has_peer) add(c, PairKey(call.api, call.peer));
      } else if (!call.group.empty() && !call.group_id.empty()) {
        add(c, call.group_id + call.api);
      }
    }
  }

  static std::string PairKey(std::string_view api, std::string_view peer) {
    return std::string(api) + "rank" + std::string(peer);
  }
  static std::string BatchKey(std::string_view op, std::string_view peer, std::string_view group) {
    return std::string(op) + "_rank" + std::string(peer) + "_" + std::string(group);
  }
  std::string RankText(size_t r) const { return std::to_string(ranks_[r].rank); }

  bool FindCall(const std::string& rank, const std::string& key, size_t* r, size_t* c) const {
    const auto it = by_rank_.find(rank);
    if (it == by_rank_.end()) return false;
    const auto call = names_[it->second].call_of.find(key);
    if (call == names_[it->second].call_of.end()) return false;
    *r = it->second;
    *c = call->second;
    return true;
  }

  void LinkPair(size_t r, size_t c, const Rule& rule) {
    const LinkedCall& call = ranks_[r].calls[c];
    if (names_[r].keys[c].empty()) return;
    const std::string key = PairKey(rule.partner, RankText(r)) + "_" + std::to_string(names_[r].counts[c][0]);
    size_t pr = 0, pc = 0;
    if (!FindCall(call.peer, key, &pr, &pc)) return;
    const LinkedCall& partner = ranks_[pr].calls[pc];
    if (partner.peer != RankText(r)) return;
    links_[r][c] = {rule.type, {{call.peer, &partner}}};
    links_[pr][pc] = {Opposite(rule.type), {{RankText(r), &call}}};
  }

  void LinkGroup(size_t r, size_t c, const Rule* rule) {
    const LinkedCall& call = ranks_[r].calls[c];
    if (rule && (!call.has_peer || call.peer != RankText(r))) return;  // the root links for everybody
    if (names_[r].keys[c].empty()) return;
    Link link{rule ? rule->type : "send_receive", {}};
    for (int64_t target : call.group) {
      if (target == ranks_[r].rank) continue;
      size_t pr = 0, pc = 0;
      if (!FindCall(std::to_string(target), names_[r].keys[c][0], &pr, &pc)) continue;
      const LinkedCall& partner = ranks_[pr].calls[pc];
      if (partner.group_id != call.group_id || partner.group.empty()) continue;
      link.nodes.emplace_back(std::to_string(target), &partner);
      if (rule) links_[pr][pc] = {Opposite(rule->type), {{RankText(r), &call}}};
    }
    if (!link.empty()) links_[r][c] = std::move(link);
  }

  // All partners of a batch in one link, as for a collective: one entry for each rank it talks to.
  void LinkBatch(size_t r, size_t c) {
    const LinkedCall& call = ranks_[r].calls[c];
    Link link;
    for (size_t i = 0; i < call.batch.size(); ++i) {
      const P2pOp& op = call.batch[i];
      const Rule* rule = RuleOf(op.op);
      if (!rule || !rule->point_to_point) continue;
      const std::string key =
          BatchKey(rule->partner, RankText(r), op.group_id) + "_" + std::to_string(names_[r].counts[c][i]);
      size_t pr = 0, pc = 0;
      if (!FindCall(op.peer, key, &pr, &pc)) continue;
      link.type = link.type.empty() || link.type == rule->type ? rule->type : std::string_view("send_receive");
      const auto known = [&](const auto& n) { return n.first == op.peer; };
      if (std::none_of(link.nodes.begin(), link.nodes.end(), known))
        link.nodes.emplace_back(op.peer, &ranks_[pr].calls[pc]);
    }
    if (!link.empty()) links_[r][c] = std::move(link);
  }

  static std::string Json(const Link& link) {
    std::string out = "{\"communications_type\": \"";
    out += link.type;
    out += "\", \"nodes_info\": {";
    const char* comma = "";
    for (const auto& [rank, partner] : link.nodes) {
      out += comma;
      comma = ", ";
      AppendJsonString(out, rank);
      out += ": [";
      AppendJsonString(out, partner->index);
      out += ", ";
      AppendJsonString(out, partner->node);
      out += ']';
    }
    return out + "}}";
  }

  const std::vector<LinkedRank>& ranks_;
  std::unordered_map<std::string, size_t> by_rank_;
  std::vector<Names> names_;
  std::vector<std::vector<Link>> links_;
};

}  // namespace

LinkedCall ReadLinkedCall(std::string_view node, const ParamList& params, const JsonValue& op) {
  LinkedCall call;
  call.node = node;
  call.api = Segment(node, 1);
  const std::string input = std::string(node) + ".input.";
  if (const Rule* rule = RuleOf(call.api)) {
    if (const Value* v = FieldOf(params, input + std::string(rule->argument), "value")) {
      call.peer = FieldText(*v);
      call.has_peer = true;
    }
  }
  const Value* ranks = FieldOf(params, input + "group", "group_ranks");
  const Value* id = FieldOf(params, input + "group", "group_id");
  if (ranks && id && !ranks->is_null() && !id->is_null()) {
    call.group = ParseRanks(FieldText(*ranks));
    call.group_id = FieldText(*id);
  }
  const JsonValue* output = call.api == kBatch ? Find(op, "output") : nullptr;
  if (output && output->IsArray() && !output->Empty() && (*output)[0].IsArray()) {
    for (const JsonValue& entry : (*output)[0].GetArray()) {
      P2pOp p{MemberText(entry, "op"), MemberText(entry, "peer"), MemberText(entry, "group_id")};
      if (!p.op.empty() && !p.peer.empty()) call.batch.push_back(std::move(p));
    }
  }
  return call;
}

std::vector<std::pair<int64_t, std::string>> LinkCalls(const std::vector<LinkedRank>& ranks) {
  return Linker(ranks).Run();
}

}  // namespace msprobe
