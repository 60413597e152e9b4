#include "view/node_links.h"

#include <algorithm>
#include <utility>

#include "view/graph_memo.h"
#include "view/recompare.h"

namespace msprobe::view {
namespace {

constexpr int64_t kBlock = 256;  // nodes a row of msprobe_flow
constexpr size_t kMostRuns = 4'000'000;

constexpr std::string_view kRunsSql =
    "SELECT e.node, e.nodes FROM msprobe_graph g JOIN msprobe_execution e ON e.graph = g.graph "
    "WHERE g.step = ?1 AND g.rank = ?2 AND g.data_source = ?3 ORDER BY e.position";
constexpr std::string_view kFlowSql = "SELECT node, edges FROM msprobe_flow WHERE node BETWEEN ?1 AND ?2 ORDER BY node";
constexpr std::string_view kPartnersSql =
    "SELECT b.exchange, g.step, g.rank, s.name, b.gives, b.takes FROM msprobe_exchanges a "
    "JOIN msprobe_exchanges b ON b.exchange = a.exchange AND b.node <> a.node "
    "JOIN msprobe_node n ON n.node = b.node JOIN msprobe_name s ON s.name_id = n.name_id "
    "JOIN msprobe_graph g ON n.node BETWEEN g.first AND g.last WHERE a.node = ?1 ORDER BY b.exchange, g.rank LIMIT ?2";
constexpr std::string_view kPrecisionSql =
    "SELECT verdict, error, input_error, units, cosine, max_abs_err FROM msprobe_precision WHERE node = ?1";

std::optional<double> Number(const SqliteStatement& query, int column) {
  if (!query.IsNumber(column)) return std::nullopt;
  return query.Real(column);
}

bool IsOp(const TreeNode& node) { return node.children == 0 && node.type != 9; }

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
  *out = NodePrecision{std::string(query.Text(0)), Number(query, 1), Number(query, 2),
                       Number(query, 3),           Number(query, 4), Number(query, 5)};
  return OkStatus();
}

}  // namespace

uint32_t NodeOfRow(const Tree& tree, int64_t row) {
  if (tree.empty()) return kNoNode;
  // Rows of a graph stand together in the compact layout, the only one that other tables refer to.
  const int64_t first = tree[0].rowid;
  if (row < first || row - first >= tree.size()) return kNoNode;
  const auto i = static_cast<uint32_t>(row - first);
  return tree[i].rowid == row ? i : kNoNode;
}

StatusOr<Execution> Execution::Load(const VisFile& file, const Tree& tree, int64_t step, int64_t rank,
                                    std::string_view source) {
  Execution out;
  if (tree.empty()) return out;
  const auto ask = [&](const SqliteDb& db) -> Status {
    MSP_ASSIGN_OR_RETURN(const bool there, VisFile::HasTable(db, "msprobe_execution"));
    if (!there) return OkStatus();
    MSP_ASSIGN_OR_RETURN(SqliteStatement query, db.Prepare(kRunsSql));
    query.Bind(1, step);
    query.Bind(2, rank);
    query.Bind(3, source);
    for (;;) {
      MSP_ASSIGN_OR_RETURN(const bool more, query.Step());
      if (!more || out.runs_.size() >= kMostRuns) return OkStatus();
      const uint32_t first = NodeOfRow(tree, query.Int(0));
      const int64_t count = query.Int(1);
      if (first == kNoNode || count <= 0) continue;
      out.runs_.push_back({first, static_cast<uint32_t>(std::min<int64_t>(count, tree.size() - first))});
    }
  };
  if (file.compact()) MSP_RETURN_IF_ERROR(file.Ask(ask));
  if (out.runs_.empty()) out.runs_.push_back({0, tree.size()});
  return out;
}

uint32_t Execution::Beside(const Tree& tree, uint32_t node, int direction) const {
  size_t run = 0;
  while (run < runs_.size() && (node < runs_[run].first || node - runs_[run].first >= runs_[run].count)) ++run;
  if (run == runs_.size()) return kNoNode;
  uint32_t at = node - runs_[run].first;
  for (;;) {
    if (direction > 0) {
      if (++at == runs_[run].count) {
        if (++run == runs_.size()) return kNoNode;
        at = 0;
      }
    } else if (at-- == 0) {
      if (run-- == 0) return kNoNode;
      at = runs_[run].count - 1;
    }
    const uint32_t found = runs_[run].first + at;
    if (IsOp(tree[found])) return found;
  }
}

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
      // What is no list of edges comes from no tool; the rest of the file can still be shown.
      if (!UnpackEdges(static_cast<uint32_t>(block), query.Text(1), &edges)) continue;
      for (const FlowEdge& edge : edges) {
        if (edge.node >= from && edge.node < tree.size() && edge.from < tree.size()) take(edge);
      }
    }
  };
  MSP_RETURN_IF_ERROR(file.Ask(ask));
  return there;
}

std::shared_ptr<GraphMemo> MakeGraphMemo() { return std::make_shared<GraphMemo>(); }

StatusOr<std::shared_ptr<const Execution>> ExecutionOf(const VisFile& file, const RankGraph& graph, bool npu) {
  const std::lock_guard lock(graph.memo->execution_mutex);
  auto& known = graph.memo->execution[npu ? 0 : 1];
  if (known) return known;
  MSP_ASSIGN_OR_RETURN(Execution order, Execution::Load(file, npu ? graph.npu : graph.bench, graph.step, graph.rank,
                                                        npu ? "NPU" : "Bench"));
  return known = std::make_shared<const Execution>(std::move(order));
}

StatusOr<NodeLinks> LoadLinks(const VisFile& file, const RankGraph& graph, bool npu, uint32_t node) {
  const Tree& tree = npu ? graph.npu : graph.bench;
  NodeLinks out;
  MSP_ASSIGN_OR_RETURN(const auto order, ExecutionOf(file, graph, npu));
  out.previous = order->Beside(tree, node, -1);
  out.next = order->Beside(tree, node, 1);
  const auto take = [&](const FlowEdge& edge) {
    if (edge.node == node) Keep(edge, &out.producers, &out.producers_total);
    if (edge.from == node) Keep(edge, &out.consumers, &out.consumers_total);
  };
  if (npu) {  // of a comparison only the target has it
    MSP_ASSIGN_OR_RETURN(out.flow_known, ReadFlow(file, tree, node, take));
  }
  MSP_RETURN_IF_ERROR(LoadMeasured(file, tree[node].rowid, &out));
  if (npu && IsEdited(graph, tree.Name(node))) out.precision.reset();
  return out;
}

Status LoadMeasured(const VisFile& file, int64_t row, NodeLinks* out) {
  if (!file.compact()) return OkStatus();
  return file.Ask([&](const SqliteDb& db) -> Status {
    MSP_RETURN_IF_ERROR(LoadPartners(db, row, &out->partners));
    return LoadPrecision(db, row, &out->precision);
  });
}

}  // namespace msprobe::view
