#include "view/query/overview.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "view/file/cells.h"
#include "view/file/file_rows.h"
#include "view/file/load_graph.h"
#include "view/file/rulings.h"

namespace msprobe::view {
namespace {

// The last row of a graph is its root.
constexpr std::string_view kMatrixSql =
    "SELECT g.step, g.rank, s.nodes, s.error, s.warning, s.unmatched, s.medium, s.high, s.critical "
    "FROM msprobe_graph g JOIN msprobe_subtrees s ON s.node = g.last WHERE g.data_source = 'NPU' "
    "ORDER BY g.step, g.rank LIMIT ?1";
// In the order of those.
constexpr std::string_view kRangesSql =
    "SELECT g.first, g.last FROM msprobe_graph g JOIN msprobe_subtrees s ON s.node = g.last "
    "WHERE g.data_source = 'NPU' ORDER BY g.step, g.rank LIMIT ?1";
// For files without that table: everything is read. Collections (9) are no ops.
constexpr std::string_view kScanSql =
    "SELECT step, rank, count(*), sum(op AND matched AND p >= 0.6), sum(op AND matched AND p >= 0.3 AND p < 0.6), "
    "sum(op AND NOT matched), "
    "sum(o = 'medium'), sum(o = 'high'), sum(o = 'critical') FROM (SELECT step, rank, overflow_level AS o, {0} AS p, "
    "{1} "
    "AS matched, node_type <> '9' AS op FROM tb_nodes WHERE data_source = 'NPU') GROUP BY step, rank ORDER BY step, "
    "rank LIMIT ?1";

constexpr std::string_view kFindingsSql =
    "SELECT f.kind, f.source, f.name, f.text, p.verdict, p.error, p.input_error, p.units FROM msprobe_findings f "
    "LEFT JOIN msprobe_precision p ON p.node = f.node WHERE f.step = ?1 AND f.rank = ?2 "
    "ORDER BY CASE f.kind WHEN 'first_error' THEN 0 WHEN 'first_overflow' THEN 1 WHEN 'bad_parameter' THEN 2 "
    "WHEN 'bad_gradient' THEN 3 WHEN 'bad_module' THEN 5 ELSE 4 END, f.rowid LIMIT ?3";
constexpr std::string_view kOriginSql =
    "SELECT 'origin', 'NPU', s.name, '', p.verdict, p.error, p.input_error, p.units FROM msprobe_precision p "
    "JOIN msprobe_node n ON n.node = p.node JOIN msprobe_name s ON s.name_id = n.name_id WHERE p.node = ?1";
constexpr std::string_view kNodeRangeSql =
    "SELECT first, last FROM msprobe_graph WHERE step = ?1 AND rank = ?2 AND data_source = 'NPU'";

FindingRow ReadFinding(const SqliteStatement& query) {
  FindingRow f{std::string(query.Text(0)), std::string(query.Text(1)), std::string(query.Text(2)),
               std::string(query.Text(3)), std::nullopt};
  if (!query.IsNull(4)) {
    f.precision.emplace();
    f.precision->verdict = query.Text(4);
    f.precision->error = query.Number(5);
    f.precision->input_error = query.Number(6);
    f.precision->units = query.Number(7);
  }
  return f;
}

Status ReadCells(SqliteStatement query, std::vector<OverviewCell>* out) {
  query.Bind(1, static_cast<int64_t>(kMostCells));
  const auto count = [&](int column) { return static_cast<uint64_t>(std::max<int64_t>(query.Int(column), 0)); };
  for (;;) {
    MSP_ASSIGN_OR_RETURN(const bool more, query.Step());
    if (!more) return OkStatus();
    out->push_back({.step = query.Int(0),
                    .rank = query.Int(1),
                    .nodes = count(2),
                    .error = count(3),
                    .warning = count(4),
                    .unmatched = count(5),
                    .medium = count(6),
                    .high = count(7),
                    .critical = count(8)});
  }
}

// Where the nodes of a cell stand in the file.
struct NodeRange {
  int64_t first = 0, last = -1;
  size_t cell = 0;
};

// As many as there are cells, in their order.
Status ReadRanges(const SqliteDb& db, size_t cells, std::vector<NodeRange>* out) {
  MSP_ASSIGN_OR_RETURN(SqliteStatement query, db.Prepare(kRangesSql));
  query.Bind(1, static_cast<int64_t>(cells));
  for (;;) {
    MSP_ASSIGN_OR_RETURN(const bool more, query.Step());
    if (!more) return OkStatus();
    out->push_back({query.Int(0), query.Int(1), out->size()});
  }
}

// Of all graphs in one pass over the table: that costs less than the way to the rows of each.
Status AddRulings(const VisFile& file, std::vector<NodeRange> ranges, std::vector<OverviewCell>* cells) {
  if (!file.config().verdicts || ranges.empty()) return OkStatus();
  std::sort(ranges.begin(), ranges.end(), [](const NodeRange& a, const NodeRange& b) { return a.first < b.first; });
  RowQuery query{"msprobe_precision", "node", {"verdict"}, ranges.front().first, ranges.front().last};
  for (const NodeRange& range : ranges) query.last = std::max(query.last, range.last);
  auto at = ranges.begin();
  return ReadRows(file, query, [&](const SqlRow& row) {
    while (at != ranges.end() && at->last < row.id) ++at;
    if (at == ranges.end() || row.id < at->first) return OkStatus();
    OverviewCell& cell = (*cells)[at->cell];
    const RulerVerdict ruling = RulerVerdictOf(row.values[0].text);
    cell.inherited += ruling == RulerVerdict::kInherited;
    cell.suspicious += ruling == RulerVerdict::kSuspicious;
    cell.bug += ruling == RulerVerdict::kBug;
    return OkStatus();
  });
}

// A JSON text holds one graph, whose root counts what is below it.
StatusOr<std::vector<OverviewCell>> ReadOnlyGraph(const VisFile& file) {
  const int64_t step = file.config().steps[0], rank = file.config().ranks[0];
  MSP_ASSIGN_OR_RETURN(const GraphSides graph, LoadGraph(file, step, rank));
  const Tree& tree = graph.target;
  OverviewCell cell{.step = step, .rank = rank, .nodes = tree.size()};
  if (!tree.empty()) {
    const SubtreeCounts counts = tree[tree.root()].counts;
    cell.error = counts.error;
    cell.warning = counts.warning;
    cell.unmatched = counts.unmatched;
  }
  for (uint32_t i = 0; i < tree.size(); ++i) {
    cell.medium += tree.OverflowAt(i) == Overflow::kMedium;
    cell.high += tree.OverflowAt(i) == Overflow::kHigh;
    cell.critical += tree.OverflowAt(i) == Overflow::kCritical;
  }
  return std::vector{cell};
}

// The node that a difference starts at, and how many only pass it on.
struct Blame {
  std::optional<int64_t> bug, suspicious;  // the first of them
  uint64_t inherited = 0;
};

Status ReadBlame(const VisFile& file, RowQuery query, Blame* out) {
  query.table = "msprobe_precision";
  query.key = "node";
  query.columns = {"verdict"};
  return ReadRows(file, query, [out](const SqlRow& row) {
    const std::string_view verdict = row.values[0].text;
    if (verdict == "inherited") ++out->inherited;
    if (verdict == "bug" && !out->bug) out->bug = row.id;
    if (verdict == "suspicious" && !out->suspicious) out->suspicious = row.id;
    return OkStatus();
  });
}

Status ReadOrigin(const SqliteDb& db, const Blame& blame, Findings* out) {
  out->inherited = blame.inherited;
  const std::optional<int64_t> node = blame.bug ? blame.bug : blame.suspicious;
  if (!node) return OkStatus();
  MSP_ASSIGN_OR_RETURN(SqliteStatement query, db.Prepare(kOriginSql));
  query.Bind(1, *node);
  MSP_ASSIGN_OR_RETURN(const bool found, query.Step());
  if (!found) return OkStatus();
  out->list.push_back(ReadFinding(query));
  ++out->total;
  return OkStatus();
}

// Whether they are there, and the nodes of the graph.
StatusOr<bool> FindFindings(const SqliteDb& db, int64_t step, int64_t rank, RowQuery* nodes) {
  for (const std::string_view table : {"msprobe_findings", "msprobe_precision"}) {
    MSP_ASSIGN_OR_RETURN(const bool there, VisFile::HasTable(db, table));
    if (!there) return false;
  }
  MSP_ASSIGN_OR_RETURN(SqliteStatement query, db.Prepare(kNodeRangeSql));
  query.Bind(1, step);
  query.Bind(2, rank);
  MSP_ASSIGN_OR_RETURN(const bool found, query.Step());
  if (!found) return true;
  nodes->first = query.Int(0);
  nodes->last = query.Int(1);
  return true;
}

Status ReadFindings(const SqliteDb& db, int64_t step, int64_t rank, Findings* out) {
  MSP_ASSIGN_OR_RETURN(SqliteStatement count,
                       db.Prepare("SELECT count(*) FROM msprobe_findings WHERE step = ?1 AND rank = ?2"));
  count.Bind(1, step);
  count.Bind(2, rank);
  MSP_ASSIGN_OR_RETURN(const bool counted, count.Step());
  if (counted) out->total += static_cast<uint64_t>(count.Int(0));
  MSP_ASSIGN_OR_RETURN(SqliteStatement query, db.Prepare(kFindingsSql));
  query.Bind(1, step);
  query.Bind(2, rank);
  query.Bind(3, static_cast<int64_t>(kMostFindings));
  for (;;) {
    MSP_ASSIGN_OR_RETURN(const bool more, query.Step());
    if (!more) return OkStatus();
    out->list.push_back(ReadFinding(query));
  }
}

}  // namespace

StatusOr<std::vector<OverviewCell>> LoadMatrix(const VisFile& file) {
  if (file.json()) return ReadOnlyGraph(file);
  std::vector<OverviewCell> cells;
  std::vector<NodeRange> ranges;
  const auto ask = [&](const SqliteDb& db) -> Status {
    MSP_ASSIGN_OR_RETURN(const bool counted, VisFile::HasTable(db, "msprobe_subtrees"));
    if (counted && file.compact()) {
      MSP_ASSIGN_OR_RETURN(SqliteStatement query, db.Prepare(kMatrixSql));
      MSP_RETURN_IF_ERROR(ReadCells(std::move(query), &cells));
      return ReadRanges(db, cells.size(), &ranges);
    }
    if (file.compact()) return OkStatus();  // tb_nodes is a view there, of a file that was tampered with
    const std::string sql =
        fmt::format(kScanSql, file.md5_inverted() ? "1 - precision_index" : "precision_index",
                    file.config().compared ? "coalesce(matched_node_link, '') NOT IN ('', '[]')" : "1");
    MSP_ASSIGN_OR_RETURN(SqliteStatement query, db.Prepare(sql));
    return ReadCells(std::move(query), &cells);
  };
  MSP_RETURN_IF_ERROR(file.Ask(ask));
  MSP_RETURN_IF_ERROR(AddRulings(file, std::move(ranges), &cells));
  return cells;
}

StatusOr<std::string> LoadVerdict(const VisFile& file) {
  if (file.json()) return std::string(kNoVerdict);
  std::string out;
  MSP_RETURN_IF_ERROR(file.Ask([&](const SqliteDb& db) -> Status {
    MSP_ASSIGN_OR_RETURN(const bool there, VisFile::HasTable(db, "msprobe_verdict"));
    if (!there) return OkStatus();
    MSP_ASSIGN_OR_RETURN(SqliteStatement query, db.Prepare("SELECT story FROM msprobe_verdict"));
    MSP_ASSIGN_OR_RETURN(const bool found, query.Step());
    if (found) out = query.Text(0);
    return OkStatus();
  }));
  // Of a file that was tampered with anything may come; the page gets an object or nothing.
  const std::string_view object = ObjectText(out);
  return std::string(object.empty() ? kNoVerdict : object);
}

StatusOr<Findings> LoadFindings(const VisFile& file, int64_t step, int64_t rank) {
  Findings out;
  if (!file.compact()) return out;
  RowQuery nodes;
  MSP_RETURN_IF_ERROR(file.Ask([&](const SqliteDb& db) -> Status {
    MSP_ASSIGN_OR_RETURN(out.known, FindFindings(db, step, rank, &nodes));
    return OkStatus();
  }));
  if (!out.known) return out;
  Blame blame;
  MSP_RETURN_IF_ERROR(ReadBlame(file, nodes, &blame));
  const auto read = [&](const SqliteDb& db) -> Status {
    MSP_RETURN_IF_ERROR(ReadOrigin(db, blame, &out));
    return ReadFindings(db, step, rank, &out);
  };
  MSP_RETURN_IF_ERROR(file.Ask(read));
  return out;
}

}  // namespace msprobe::view
