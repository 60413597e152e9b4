#include "view/query/node_history.h"

#include <algorithm>
#include <utility>

#include "view/file/cells.h"
#include "view/file/rulings.h"
#include "view/query/overview.h"

namespace msprobe::view {
namespace {

constexpr std::string_view kGraphsSql =
    "SELECT first, last, step, rank FROM msprobe_graph WHERE data_source = ?1 ORDER BY first";
constexpr std::string_view kNodesSql =
    "SELECT node, precision_index, overflow_level, match IS NOT NULL OR coalesce(link, '[]') <> '[]' FROM msprobe_node "
    "WHERE name_id = (SELECT name_id FROM msprobe_name WHERE name = ?1) ORDER BY node LIMIT ?2";
constexpr std::string_view kMeasuredSql = "SELECT verdict, error, units FROM msprobe_precision WHERE node = ?1";
constexpr std::string_view kPlainSql =
    "SELECT precision_index, overflow_level, matched_node_link FROM tb_nodes "
    "WHERE step = ?1 AND rank = ?2 AND data_source = ?3 AND node_name = ?4";

struct GraphRows {
  int64_t first = 0, last = 0, step = 0, rank = 0;
};

// A cell and the row of its node.
struct RowCell {
  int64_t row = 0;
  HistoryCell cell;
};

Status ReadGraphs(const SqliteDb& db, std::string_view side, std::vector<GraphRows>* out) {
  MSP_ASSIGN_OR_RETURN(SqliteStatement query, db.Prepare(kGraphsSql));
  query.Bind(1, side);
  for (;;) {
    MSP_ASSIGN_OR_RETURN(const bool more, query.Step());
    if (!more) return OkStatus();
    out->push_back({query.Int(0), query.Int(1), query.Int(2), query.Int(3)});
  }
}

Status ReadNodes(const SqliteDb& db, const VisFile& file, const std::vector<GraphRows>& graphs, std::string_view name,
                 std::vector<RowCell>* out) {
  MSP_ASSIGN_OR_RETURN(SqliteStatement query, db.Prepare(kNodesSql));
  query.Bind(1, name);
  query.Bind(2, static_cast<int64_t>(2 * kMostCells));  // of both sides
  for (;;) {
    MSP_ASSIGN_OR_RETURN(const bool more, query.Step());
    if (!more || out->size() >= kMostCells) return OkStatus();
    const int64_t row = query.Int(0);
    auto graph = std::upper_bound(graphs.begin(), graphs.end(), row,
                                  [](int64_t at, const GraphRows& g) { return at < g.first; });
    if (graph == graphs.begin() || (--graph)->last < row) continue;  // of the other side
    RowCell found{row, {.step = graph->step, .rank = graph->rank}};
    if (query.IsNumber(1)) found.cell.level = file.LevelOf(query.Real(1));
    found.cell.overflow = OverflowOf(query.Text(2));
    found.cell.matched = query.Int(3) != 0;
    out->push_back(found);
  }
}

Status ReadMeasured(const SqliteDb& db, std::vector<RowCell>* cells) {
  MSP_ASSIGN_OR_RETURN(const bool there, VisFile::HasTable(db, "msprobe_precision"));
  if (!there) return OkStatus();
  MSP_ASSIGN_OR_RETURN(SqliteStatement query, db.Prepare(kMeasuredSql));
  for (RowCell& at : *cells) {
    query.Reset();
    query.Bind(1, at.row);
    MSP_ASSIGN_OR_RETURN(const bool found, query.Step());
    if (!found) continue;
    at.cell.ruling = RulerVerdictOf(query.Text(0));
    at.cell.error = query.Number(1);
    at.cell.units = query.Number(2);
  }
  return OkStatus();
}

Status ReadPlain(const SqliteDb& db, const VisFile& file, std::string_view side, std::string_view name,
                 std::vector<RowCell>* out) {
  MSP_ASSIGN_OR_RETURN(SqliteStatement query, db.Prepare(kPlainSql));
  for (const int64_t step : file.config().steps) {
    for (const int64_t rank : file.config().ranks) {
      if (out->size() >= kMostCells) return OkStatus();
      query.Reset();
      query.Bind(1, step);
      query.Bind(2, rank);
      query.Bind(3, side);
      query.Bind(4, name);
      MSP_ASSIGN_OR_RETURN(const bool found, query.Step());
      if (!found) continue;
      RowCell at{0, {.step = step, .rank = rank}};
      if (query.IsNumber(0)) at.cell.level = file.LevelOf(query.Real(0));
      at.cell.overflow = OverflowOf(query.Text(1));
      at.cell.matched = !LastText(query.Text(2)).empty();
      out->push_back(at);
    }
  }
  return OkStatus();
}

Status ReadOnlyNode(const VisFile& file, std::string_view side, std::string_view name, std::vector<RowCell>* out) {
  RowCell at{0, {.step = file.config().steps[0], .rank = file.config().ranks[0]}};
  Tree tree;
  MSP_RETURN_IF_ERROR(file.LoadSide(at.cell.step, at.cell.rank, side, &tree));
  const uint32_t node = tree.Find(name);
  if (node == kNoNode) return OkStatus();
  at.cell.level = tree.LevelOf(node);
  at.cell.overflow = tree.OverflowAt(node);
  at.cell.matched = tree.IsMatched(node);
  out->push_back(at);
  return OkStatus();
}

}  // namespace

StatusOr<NodeHistory> LoadHistory(const VisFile& file, Side side, std::string_view name) {
  std::vector<RowCell> rows;
  const std::string_view source = side == Side::kTarget ? "NPU" : "Bench";
  const auto ask = [&](const SqliteDb& db) -> Status {
    if (!file.compact()) return ReadPlain(db, file, source, name, &rows);
    std::vector<GraphRows> graphs;
    MSP_RETURN_IF_ERROR(ReadGraphs(db, source, &graphs));
    MSP_RETURN_IF_ERROR(ReadNodes(db, file, graphs, name, &rows));
    return side == Side::kTarget ? ReadMeasured(db, &rows) : OkStatus();
  };
  MSP_RETURN_IF_ERROR(file.json() ? ReadOnlyNode(file, source, name, &rows) : file.Ask(ask));
  NodeHistory out{std::string(name), side, {}};
  for (RowCell& at : rows) {
    // Only what was compared has a level.
    if (!at.cell.matched) at.cell.level = Verdict::kNone;
    out.cells.push_back(at.cell);
  }
  const auto place = [](const HistoryCell& c) { return std::pair(c.step, c.rank); };
  std::stable_sort(out.cells.begin(), out.cells.end(),
                   [&](const HistoryCell& a, const HistoryCell& b) { return place(a) < place(b); });
  // Of several nodes of a name the first one counts, as everywhere.
  out.cells.erase(std::unique(out.cells.begin(), out.cells.end(),
                              [&](const HistoryCell& a, const HistoryCell& b) { return place(a) == place(b); }),
                  out.cells.end());
  return out;
}

}  // namespace msprobe::view
