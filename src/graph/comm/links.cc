#include "graph/comm/links.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "graph/tree/node_graph.h"
#include "json/writer.h"
#include "ops/collective.h"

namespace msprobe {
namespace {

/// The link of one node, before it becomes JSON.
struct Link {
  bool sends = false, receives = false;
  std::vector<std::pair<int, const NodeCall*>> nodes;  // one for each rank that a viewer shows
};

using Place = std::pair<uint32_t, uint32_t>;       // rank, call
using LastRow = std::unordered_map<int, int64_t>;  // of each rank: whose link has a node of it

/// Adds the partners of one call to the link of the node that shows it. The table of exchanges has all of them.
void AddPartners(const std::vector<RankNodeCalls>& ranks, const CommGraph& graph, Place at, LastRow* last, Link* link) {
  const int64_t row = ranks[at.first].calls[at.second].row_id;
  for (const CommPart& part : graph.ranks[at.first].calls[at.second].parts) {
    for (const CommMember& m : graph.events[part.event].members) {
      const bool to = part.gives && m.takes, from = part.takes && m.gives;
      const NodeCall& partner = ranks[m.rank].calls[m.call];
      if (m.rank == at.first || (!to && !from) || partner.row_id == 0 || partner.row_id == row) continue;
      link->sends |= to;
      link->receives |= from;
      const int shown = ranks[m.rank].ShownAt(partner);
      if (std::exchange((*last)[shown], row) != row) link->nodes.emplace_back(shown, &partner);
    }
  }
}

std::string Json(const Link& link) {
  JsonWriter json;
  json.BeginObject();
  json.Member("communications_type", link.sends && link.receives ? "send_receive" : link.sends ? "send" : "receive");
  json.ObjectMember("nodes_info", [&] {
    for (const auto& [rank, partner] : link.nodes) {
      json.Key(std::to_string(rank));
      json.BeginArray();
      json.String(partner->index);
      json.String(partner->node);
      json.EndArray();
    }
  });
  json.EndObject();
  return json.Take();
}

}  // namespace

NodeCall ReadNodeCall(std::string_view node, const JsonValue& op, int rank) {
  NodeCall call;
  call.node = node;
  call.api = CommFunction(node);
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
  std::vector<NamedCalls> named;
  for (RankNodeCalls& r : *ranks) {
    named.push_back({r.rank, {}});
    for (NodeCall& call : r.calls) {
      for (CommTransfer& t : call.transfers) named.back().transfers.push_back(&t);
    }
  }
  NameGroups(named);
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
  std::vector<std::pair<int64_t, std::vector<Place>>> rows;  // each with its calls, in their order
  std::unordered_map<int64_t, size_t> at;
  for (uint32_t r = 0; r < ranks.size(); ++r) {
    for (uint32_t c = 0; c < ranks[r].calls.size(); ++c) {
      const int64_t row = ranks[r].calls[c].row_id;
      if (row == 0) continue;
      const auto [it, fresh] = at.try_emplace(row, rows.size());
      if (fresh) rows.emplace_back(row, std::vector<Place>());
      rows[it->second].second.emplace_back(r, c);
    }
  }
  std::vector<std::pair<int64_t, std::string>> out;
  LastRow last;
  for (const auto& [row, calls] : rows) {
    Link link;
    for (const Place& call : calls) AddPartners(ranks, graph, call, &last, &link);
    if (!link.nodes.empty()) out.emplace_back(row, Json(link));
  }
  return out;
}

}  // namespace msprobe
