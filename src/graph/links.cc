#include "graph/links.h"

#include <algorithm>
#include <unordered_set>

#include "base/text.h"
#include "graph/node_graph.h"

namespace msprobe {
namespace {

/// The link of one call, before it becomes JSON.
struct Link {
  bool sends = false, receives = false;
  std::vector<std::pair<uint32_t, uint32_t>> nodes;  // rank, call: one for each other rank
};

Link LinkOf(const CommGraph& graph, uint32_t rank, uint32_t call) {
  Link link;
  const std::vector<CommPart>& parts = graph.ranks[rank].calls[call].parts;
  std::unordered_set<uint32_t> known;
  for (const CommPart& part : parts) {
    for (const CommMember& m : graph.events[part.event].members) {
      const bool to = part.gives && m.takes, from = part.takes && m.gives;
      if (m.rank == rank || (!to && !from)) continue;
      link.sends |= to;
      link.receives |= from;
      // A viewer shows one partner on each rank; the table of exchanges has all.
      if (parts.size() == 1 || known.insert(m.rank).second) link.nodes.emplace_back(m.rank, m.call);
    }
  }
  return link;
}

std::string Json(const std::vector<RankNodeCalls>& ranks, const Link& link) {
  std::string out = "{\"communications_type\": \"";
  out += link.sends && link.receives ? "send_receive" : link.sends ? "send" : "receive";
  out += "\", \"nodes_info\": {";
  const char* comma = "";
  for (const auto& [rank, call] : link.nodes) {
    const NodeCall& partner = ranks[rank].calls[call];
    out += comma;
    comma = ", ";
    AppendJsonString(out, std::to_string(ranks[rank].rank));
    out += ": [";
    AppendJsonString(out, partner.index);
    out += ", ";
    AppendJsonString(out, partner.node);
    out += ']';
  }
  return out + "}}";
}

}  // namespace

NodeCall ReadNodeCall(std::string_view node, const JsonValue& op, int rank) {
  NodeCall call;
  call.node = node;
  call.api = Segment(node, 1);
  ReadExchanges(node, op, rank, &call.transfers, &call.data);
  return call;
}

void SortCalls(std::vector<RankNodeCalls>* ranks) {
  std::sort(ranks->begin(), ranks->end(),
            [](const RankNodeCalls& a, const RankNodeCalls& b) { return a.rank < b.rank; });
  for (RankNodeCalls& r : *ranks) {
    std::stable_sort(r.calls.begin(), r.calls.end(),
                     [](const NodeCall& a, const NodeCall& b) { return a.line < b.line; });
  }
}

CommGraph JoinNodeCalls(const std::vector<RankNodeCalls>& ranks) {
  std::vector<RankCalls> out(ranks.size());
  for (size_t r = 0; r < ranks.size(); ++r) {
    out[r].rank.rank = ranks[r].rank;
    out[r].rank.ops = ranks[r].calls.size();
    for (size_t c = 0; c < ranks[r].calls.size(); ++c) {
      CommCall call;
      call.op = c;
      call.name = ranks[r].calls[c].node;
      call.api = ranks[r].calls[c].api;
      out[r].rank.calls.push_back(std::move(call));
      out[r].transfers.push_back(ranks[r].calls[c].transfers);
    }
  }
  return JoinCalls(std::move(out));
}

std::vector<std::pair<int64_t, std::string>> LinkCalls(const std::vector<RankNodeCalls>& ranks,
                                                       const CommGraph& graph) {
  std::vector<std::pair<int64_t, std::string>> out;
  for (uint32_t r = 0; r < ranks.size(); ++r) {
    for (uint32_t c = 0; c < ranks[r].calls.size(); ++c) {
      const Link link = LinkOf(graph, r, c);
      if (!link.nodes.empty()) out.emplace_back(ranks[r].calls[c].row_id, Json(ranks, link));
    }
  }
  return out;
}

}  // namespace msprobe
