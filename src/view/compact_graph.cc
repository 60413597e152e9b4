#include "view/compact_graph.h"

#include <algorithm>
#include <future>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace msprobe::view {
namespace {

constexpr std::string_view kSidesSql =
    "SELECT data_source, first, last FROM msprobe_graph WHERE step = ?1 AND rank = ?2";
constexpr std::string_view kNameRangeSql =
    "SELECT (SELECT min(name_id) FROM msprobe_name), (SELECT max(name_id) FROM msprobe_name)";
constexpr std::string_view kNamesSql = "SELECT name_id, name FROM msprobe_name ORDER BY name_id";
constexpr std::string_view kNodesSql =
    "SELECT node, name_id, up, type, precision_index, overflow_level, micro_step, match, link FROM msprobe_node "
    "WHERE node BETWEEN ?1 AND ?2 ORDER BY node";
// Names are of all graphs of the file. Where a graph has few of them it is read by itself.
constexpr int64_t kMostNamesANode = 8, kFewNames = 1 << 20;

struct Range {
  int64_t first = 0, last = -1;
  int64_t count() const { return last - first + 1; }
  bool Holds(int64_t value) const { return value >= first && value <= last; }
};

struct Layout {
  Range npu, bench, names;
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
      if (sides.Text(0) == "NPU") out.npu = {sides.Int(1), sides.Int(2)};
      if (sides.Text(0) == "Bench") out.bench = {sides.Int(1), sides.Int(2)};
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
  const Status read = file.Ask([&](const SqliteDb& db) -> Status {
    MSP_ASSIGN_OR_RETURN(SqliteStatement query, db.Prepare(kNamesSql));
    for (;;) {
      MSP_ASSIGN_OR_RETURN(const bool row, query.Step());
      if (!row) return OkStatus();
      if (query.Int(0) != range.first + names->size()) {
        dense = false;
        return OkStatus();
      }
      MSP_RETURN_IF_ERROR(file.InFile(names->Append(query.Text(1))));
    }
  });
  MSP_RETURN_IF_ERROR(read);
  if (!dense || names->size() != range.count()) return std::shared_ptr<const NodeNames>();
  names->Index();
  return std::shared_ptr<const NodeNames>(std::move(names));
}

// Partners that a viewer set by their names.
using NamedPartners = std::vector<std::pair<uint32_t, std::string>>;

Status ReadSide(const VisFile& file, const Range& nodes, const Range& names, Tree* tree, NamedPartners* by_name) {
  return file.Ask([&](const SqliteDb& db) -> Status {
    MSP_ASSIGN_OR_RETURN(SqliteStatement query, db.Prepare(kNodesSql));
    query.Bind(1, nodes.first);
    query.Bind(2, nodes.last);
    tree->Reserve(static_cast<size_t>(std::min<int64_t>(Length(nodes), 1 << 24)));
    for (;;) {
      MSP_ASSIGN_OR_RETURN(const bool row, query.Step());
      if (!row) return OkStatus();
      const int64_t name = query.Int(1), up = query.Int(2);
      if (!names.Holds(name) || !names.Holds(up)) continue;
      TreeNode node;
      node.rowid = query.Int(0);
      node.order = static_cast<int64_t>(static_cast<uint64_t>(node.rowid) - static_cast<uint64_t>(nodes.first));
      node.type = static_cast<uint8_t>(std::clamp<int64_t>(query.Int(3), 0, 9));
      if (query.IsNumber(4)) node.level = file.LevelOf(query.Real(4));
      if (!query.IsNull(5)) node.overflow = OverflowOf(query.Text(5));
      node.micro_step = query.Int(6);
      uint32_t partner = NodeNames::kNone;
      if (!query.IsNull(8)) {
        by_name->emplace_back(tree->size(), LastText(query.Text(8)));
      } else if (!query.IsNull(7) && names.Holds(query.Int(7))) {
        partner = static_cast<uint32_t>(query.Int(7) - names.first);
      }
      const auto number = [&](int64_t id) { return static_cast<uint32_t>(id - names.first); };
      MSP_RETURN_IF_ERROR(file.InFile(tree->AddNumbered(node, number(name), number(up), partner)));
    }
  });
}

void LinkSide(const std::shared_ptr<const NodeNames>& names, const NamedPartners& by_name, Tree* tree) {
  for (const auto& [node, partner] : by_name) tree->SetPartner(node, partner.empty() ? kNoNode : names->Find(partner));
  tree->Link(names);
}

}  // namespace

StatusOr<bool> LoadCompactGraph(const VisFile& file, int64_t step, int64_t rank, std::shared_ptr<const NodeNames> known,
                                RankGraph* out) {
  MSP_ASSIGN_OR_RETURN(const Layout layout, ReadLayout(file, step, rank));
  const int64_t nodes = std::max(Length(layout.npu), Length(layout.bench));
  const int64_t most = nodes < (1 << 24) ? kMostNamesANode * nodes + kFewNames : kMostNamesANode << 24;
  if (Length(layout.names) > most) return false;
  RankGraph graph;
  NamedPartners npu_names, bench_names;
  // All at the same time: the first look at a large graph is what a person waits for.
  std::future<StatusOr<std::shared_ptr<const NodeNames>>> reading;
  if (!known) reading = std::async(std::launch::async, [&] { return ReadNames(file, layout.names); });
  auto bench = std::async(std::launch::async,
                          [&] { return ReadSide(file, layout.bench, layout.names, &graph.bench, &bench_names); });
  const Status npu_status = ReadSide(file, layout.npu, layout.names, &graph.npu, &npu_names);
  const Status bench_status = bench.get();
  if (reading.valid()) {
    MSP_ASSIGN_OR_RETURN(known, reading.get());
  }
  MSP_RETURN_IF_ERROR(npu_status);
  MSP_RETURN_IF_ERROR(bench_status);
  if (!known) return false;
  auto other = std::async(std::launch::async, [&] { LinkSide(known, bench_names, &graph.bench); });
  LinkSide(known, npu_names, &graph.npu);
  other.get();
  *out = std::move(graph);
  return true;
}

}  // namespace msprobe::view
