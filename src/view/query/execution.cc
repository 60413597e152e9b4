#include "view/query/execution.h"

#include <algorithm>

namespace msprobe::view {
namespace {

constexpr size_t kMostRuns = 4'000'000;

constexpr std::string_view kRunsSql =
    "SELECT e.node, e.nodes FROM msprobe_graph g JOIN msprobe_execution e ON e.graph = g.graph "
    "WHERE g.step = ?1 AND g.rank = ?2 AND g.data_source = ?3 ORDER BY e.position";

bool IsOp(const TreeNode& node) { return node.children == 0 && node.type != 9; }

}  // namespace

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
      const uint32_t first = tree.AtRow(query.Int(0));
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

}  // namespace msprobe::view
