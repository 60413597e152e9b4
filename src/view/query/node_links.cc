#include "view/query/node_links.h"

#include <algorithm>
#include <utility>

#include "view/query/execution.h"
#include "view/query/graph_memo.h"
#include "view/query/recompare.h"

namespace msprobe::view {
namespace {

constexpr int64_t kBlock = 256;  // nodes a row of msprobe_flow
constexpr std::string_view kFlowSql = "SELECT node, edges FROM msprobe_flow WHERE node BETWEEN ?1 AND ?2 ORDER BY node";
constexpr std::string_view kPartnersSql =
    "SELECT b.exchange, g.step, g.rank, s.name, b.gives, b.takes FROM msprobe_exchanges a "
    "JOIN msprobe_exchanges b ON b.exchange = a.exchange AND b.node <> a.node "
    "JOIN msprobe_node n ON n.node = b.node JOIN msprobe_name s ON s.name_id = n.name_id "
    "JOIN msprobe_graph g ON n.node BETWEEN g.first AND g.last WHERE a.node = ?1 ORDER BY b.exchange, g.rank LIMIT ?2";
constexpr std::string_view kPrecisionSql =
    "SELECT verdict, error, input_error, units, cosine, max_abs_err FROM msprobe_precision WHERE node = ?1";

void Keep(const FlowEdge& edge, std::vector<FlowEdge>* list, uint64_t* total) {
  ++*total;
  if (list->size() < NodeLinks::kMostEdges) list->push_back(edge);
}

Status LoadPartners(const SqliteDb& db, int64_t row, std::vector<ExchangePartner>* out) {
  MSP_ASSIGN_OR_RETURN(const bool there, VisFile::HasTable(db, "msprobe_exchanges"));
  if (!there) return OkStatus();
  MSP_ASSIGN_OR_RETURN(SqliteStatement query, db.Prepare(kPartnersSql));
  query.Bind(1, row);
  query.Bind(2, static_cast<int64_t>(NodeLinks::kMostPartners));
  for (;;) {
    MSP_ASSIGN_OR_RETURN(const bool more, query.Step());
    if (!more) return OkStatus();
    out->push_back(
        {query.Int(0), query.Int(1), query.Int(2), std::string(query.Text(3)), query.Int(4) != 0, query.Int(5) != 0});
  }
}

Status LoadPrecision(const SqliteDb& db, int64_t row, std::optional<NodePrecision>* out) {
  MSP_ASSIGN_OR_RETURN(const bool there, VisFile::HasTable(db, "msprobe_precision"));
  if (!there) return OkStatus();
  MSP_ASSIGN_OR_RETURN(SqliteStatement query, db.Prepare(kPrecisionSql));
  query.Bind(1, row);
  MSP_ASSIGN_OR_RETURN(const bool found, query.Step());
  if (!found) return OkStatus();
  *out = NodePrecision{
      std::string(query.Text(0)), query.Number(1), query.Number(2), query.Number(3), query.Number(4), query.Number(5)};
  return OkStatus();
}

}  // namespace

StatusOr<bool> ReadFlow(const VisFile& file, const Tree& tree, uint32_t from,
                        const std::function<void(const FlowEdge&)>& take) {
  bool there = false;
  if (!file.compact() || tree.empty()) return there;
  const int64_t first = tree[0].rowid;
  const auto ask = [&](const SqliteDb& db) -> Status {
    MSP_ASSIGN_OR_RETURN(there, VisFile::HasTable(db, "msprobe_flow"));
    if (!there) return OkStatus();
    MSP_ASSIGN_OR_RETURN(SqliteStatement query, db.Prepare(kFlowSql));
    query.Bind(1, std::max(first, first + from - (kBlock - 1)));
    query.Bind(2, first + tree.size() - 1);
    std::vector<FlowEdge> edges;
    for (;;) {
      MSP_ASSIGN_OR_RETURN(const bool more, query.Step());
      if (!more) return OkStatus();
      edges.clear();
      const int64_t block = query.Int(0) - first;
      // What is not a list of edges comes from no tool; the rest of the file can still be shown.
      if (!UnpackEdges(static_cast<uint32_t>(block), query.Text(1), &edges)) continue;
      for (const FlowEdge& edge : edges) {
        if (edge.node >= from && edge.node < tree.size() && edge.from < tree.size()) take(edge);
      }
    }
  };
  MSP_RETURN_IF_ERROR(file.Ask(ask));
  return there;
}

StatusOr<std::shared_ptr<const Execution>> ExecutionOf(const VisFile& file, const GraphSides& graph, bool target) {
  const std::lock_guard lock(graph.memo->execution_mutex);
  auto& known = graph.memo->execution[target ? 0 : 1];
  if (known) return known;
  MSP_ASSIGN_OR_RETURN(Execution order, Execution::Load(file, target ? graph.target : graph.golden, graph.step,
                                                        graph.rank, target ? "NPU" : "Bench"));
  return known = std::make_shared<const Execution>(std::move(order));
}

StatusOr<NodeLinks> LoadLinks(const VisFile& file, const GraphSides& graph, bool target, uint32_t node) {
  const Tree& tree = target ? graph.target : graph.golden;
  NodeLinks out;
  MSP_ASSIGN_OR_RETURN(const auto order, ExecutionOf(file, graph, target));
  out.previous = order->Beside(tree, node, -1);
  out.next = order->Beside(tree, node, 1);
  const auto take = [&](const FlowEdge& edge) {
    if (edge.node == node) Keep(edge, &out.producers, &out.producers_total);
    if (edge.from == node) Keep(edge, &out.consumers, &out.consumers_total);
  };
  if (target) {  // of a comparison only the target has it
    MSP_ASSIGN_OR_RETURN(out.flow_known, ReadFlow(file, tree, node, take));
  }
  MSP_RETURN_IF_ERROR(LoadMeasured(file, tree, node, &out));
  if (target && IsEdited(graph, tree.Name(node))) out.precision.reset();
  return out;
}

Status LoadMeasured(const VisFile& file, const Tree& tree, uint32_t node, NodeLinks* out) {
  if (!file.compact()) return OkStatus();
  const int64_t row = tree[node].rowid;
  const auto ask = [&](const SqliteDb& db) -> Status {
    MSP_RETURN_IF_ERROR(LoadPartners(db, row, &out->partners));
    return LoadPrecision(db, row, &out->precision);
  };
  MSP_RETURN_IF_ERROR(file.Ask(ask));
  // As every other answer has it: what came from another rank does not begin here.
  const RulerVerdict ruling = tree.RulingOf(node);
  if (out->precision && ruling != RulerVerdict::kNone) out->precision->verdict = RulerVerdictText(ruling);
  return OkStatus();
}

}  // namespace msprobe::view
