#include "view/file/compact_graph.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/parallel.h"
#include "view/file/file_rows.h"

namespace msprobe::view {
namespace {

constexpr std::string_view kSidesSql =
    "SELECT data_source, first, last FROM msprobe_graph WHERE step = ?1 AND rank = ?2";
constexpr std::string_view kNameRangeSql =
    "SELECT (SELECT min(name_id) FROM msprobe_name), (SELECT max(name_id) FROM msprobe_name)";
// Names are of all graphs of the file. Where a graph has few of them it is read by itself.
constexpr int64_t kMostNamesANode = 8, kFewNames = 1 << 20;

struct Range {
  int64_t first = 0, last = -1;
  int64_t count() const { return last - first + 1; }
  bool Holds(int64_t value) const { return value >= first && value <= last; }
};

// Columns of a node, as they stand in its row.
enum NodeColumn : uint8_t { kName, kUp, kType, kMicroStep, kPrecision, kOverflow, kMatch, kLink };

RowQuery NodeQuery(const Range& nodes) {
  return {"msprobe_node",
          "node",
          {"name_id", "up", "type", "micro_step", "precision_index", "overflow_level", "match", "link"},
          nodes.first,
          nodes.last};
}

struct Layout {
  Range target, golden, names;
};

// Of any two numbers in the file, however large.
int64_t Length(const Range& r) {
  const auto length = static_cast<uint64_t>(r.last) - static_cast<uint64_t>(r.first);
  return r.last < r.first ? 0 : static_cast<int64_t>(std::min<uint64_t>(length, INT64_MAX - 1)) + 1;
}

StatusOr<Layout> ReadLayout(const VisFile& file, int64_t step, int64_t rank) {
  Layout out;
  MSP_RETURN_IF_ERROR(file.Ask([&](const SqliteDb& db) -> Status {
    MSP_ASSIGN_OR_RETURN(SqliteStatement sides, db.Prepare(kSidesSql));
    sides.Bind(1, step);
    sides.Bind(2, rank);
    for (;;) {
      MSP_ASSIGN_OR_RETURN(const bool row, sides.Step());
      if (!row) break;
      if (sides.Text(0) == "NPU") out.target = {sides.Int(1), sides.Int(2)};
      if (sides.Text(0) == "Bench") out.golden = {sides.Int(1), sides.Int(2)};
    }
    MSP_ASSIGN_OR_RETURN(SqliteStatement names, db.Prepare(kNameRangeSql));
    MSP_ASSIGN_OR_RETURN(const bool row, names.Step());
    if (row && !names.IsNull(0)) out.names = {names.Int(0), names.Int(1)};
    return OkStatus();
  }));
  return out;
}

// Null when the numbers have gaps.
StatusOr<std::shared_ptr<const NodeNames>> ReadNames(const VisFile& file, const Range& range) {
  auto names = std::make_shared<NodeNames>();
  names->Reserve(static_cast<size_t>(range.count()));
  bool dense = true;
  const RowQuery query{"msprobe_name", "name_id", {"name"}, range.first, range.last};
  MSP_RETURN_IF_ERROR(ReadRows(file, query, [&](const SqlRow& row) -> Status {
    dense = dense && row.id == range.first + names->size();
    return dense ? file.InFile(names->Append(row.values[0].text)) : OkStatus();
  }));
  if (!dense || names->size() != range.count()) return std::shared_ptr<const NodeNames>();
  names->Index();
  return std::shared_ptr<const NodeNames>(std::move(names));
}

// Partners that a viewer set by their names.
using NamedPartners = std::vector<std::pair<uint32_t, std::string>>;

Status ReadSide(const VisFile& file, const Range& nodes, const Range& names, Tree* tree, NamedPartners* by_name) {
  tree->Reserve(static_cast<size_t>(std::min<int64_t>(Length(nodes), 1 << 24)));
  const auto number = [&](int64_t id) { return static_cast<uint32_t>(id - names.first); };
  return ReadRows(file, NodeQuery(nodes), [&](const SqlRow& row) -> Status {
    const int64_t name = row.values[kName].integer, up = row.values[kUp].integer;
    if (!names.Holds(name) || !names.Holds(up)) return OkStatus();
    TreeNode node;
    node.rowid = row.id;
    node.order = static_cast<int64_t>(static_cast<uint64_t>(node.rowid) - static_cast<uint64_t>(nodes.first));
    node.type = static_cast<uint8_t>(std::clamp<int64_t>(row.values[kType].integer, 0, 9));
    if (row.values[kPrecision].IsNumber()) node.level = file.LevelOf(row.values[kPrecision].real);
    node.overflow = OverflowOf(row.values[kOverflow].text);
    node.micro_step = row.values[kMicroStep].integer;
    uint32_t partner = NodeNames::kNone;
    const SqlValue &match = row.values[kMatch], &link = row.values[kLink];
    if (!link.IsNull()) {
      by_name->emplace_back(tree->size(), LastText(link.text));
    } else if (!match.IsNull() && names.Holds(match.integer)) {
      partner = number(match.integer);
    }
    return file.InFile(tree->AddNumbered(node, number(name), number(up), partner));
  });
}

void LinkSide(const std::shared_ptr<const NodeNames>& names, const NamedPartners& by_name, Tree* tree) {
  for (const auto& [node, partner] : by_name) tree->SetPartner(node, partner.empty() ? kNoNode : names->Find(partner));
  tree->Link(names);
}

}  // namespace

StatusOr<bool> LoadCompactGraph(const VisFile& file, int64_t step, int64_t rank, std::shared_ptr<const NodeNames> known,
                                GraphSides* out) {
  MSP_ASSIGN_OR_RETURN(const Layout layout, ReadLayout(file, step, rank));
  const int64_t nodes = std::max(Length(layout.target), Length(layout.golden));
  const int64_t most = nodes < (1 << 24) ? kMostNamesANode * nodes + kFewNames : kMostNamesANode << 24;
  if (Length(layout.names) > most) return false;
  GraphSides graph;
  NamedPartners target_names, golden_names;
  // All at the same time: the first look at a large graph is what a person waits for.
  StatusOr<std::shared_ptr<const NodeNames>> read_names(std::move(known));
  MSP_RETURN_IF_ERROR(ParallelFor(3, [&](size_t part) -> Status {
    if (part == 1) return ReadSide(file, layout.target, layout.names, &graph.target, &target_names);
    if (part == 2) return ReadSide(file, layout.golden, layout.names, &graph.golden, &golden_names);
    if (!*read_names) read_names = ReadNames(file, layout.names);
    return read_names.status();
  }));
  if (!*read_names) return false;
  MSP_RETURN_IF_ERROR(ParallelFor(2, [&](size_t part) {
    part == 0 ? LinkSide(*read_names, target_names, &graph.target) : LinkSide(*read_names, golden_names, &graph.golden);
    return OkStatus();
  }));
  *out = std::move(graph);
  return true;
}

}  // namespace msprobe::view
