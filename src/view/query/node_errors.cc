#include "view/query/node_errors.h"

#include <limits>

#include "view/file/file_rows.h"
#include "view/query/graph_memo.h"
#include "view/query/recompare.h"

namespace msprobe::view {
namespace {

constexpr double kNoError = std::numeric_limits<double>::quiet_NaN();

StatusOr<NodeErrors> LoadErrors(const VisFile& file, const GraphSides& graph) {
  const Tree& tree = graph.target;
  NodeErrors out(tree.size(), kNoError);
  if (!file.compact() || tree.empty()) return out;
  const int64_t first = tree[0].rowid;
  const RowQuery query{"msprobe_precision", "node", {"error"}, first, Tree::Behind(first, tree.size() - 1)};
  MSP_RETURN_IF_ERROR(ReadRows(file, query, [&](const SqlRow& row) {
    const uint32_t i = tree.AtRow(row.id);
    if (i == kNoNode || !row.values[0].IsNumber() || IsEdited(graph, tree.Name(i))) return OkStatus();
    out[i] = row.values[0].real;
    return OkStatus();
  }));
  return out;
}

NodeErrors OfPartners(const NodeErrors& errors, const Tree& golden) {
  NodeErrors out(golden.size(), kNoError);
  for (uint32_t i = 0; i < golden.size(); ++i) {
    const uint32_t partner = golden[i].partner;
    if (partner != kNoNode) out[i] = errors[partner];
  }
  return out;
}

}  // namespace

StatusOr<std::shared_ptr<const NodeErrors>> ErrorsOf(const VisFile& file, const GraphSides& graph, Side side) {
  const std::lock_guard lock(graph.memo->errors_mutex);
  auto& known = graph.memo->errors;
  if (!known) {
    MSP_ASSIGN_OR_RETURN(NodeErrors errors, LoadErrors(file, graph));
    known = std::make_shared<const NodeErrors>(std::move(errors));
  }
  if (side == Side::kTarget) return known;
  return std::shared_ptr<const NodeErrors>(std::make_shared<const NodeErrors>(OfPartners(*known, graph.golden)));
}

}  // namespace msprobe::view
