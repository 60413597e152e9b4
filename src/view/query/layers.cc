#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>

#include "view/file/file_rows.h"
#include "view/query/graph_memo.h"
#include "view/query/overview.h"
#include "view/query/recompare.h"
#include "view/values/layer_finder.h"

namespace msprobe::view {
namespace {

struct Measured {
  float error = std::numeric_limits<float>::quiet_NaN(), units = std::numeric_limits<float>::quiet_NaN();
};

// One entry a node; empty when the file does not measure.
StatusOr<std::vector<Measured>> LoadMeasured(const VisFile& file, const Tree& tree) {
  std::vector<Measured> out;
  if (!file.compact() || tree.empty()) return out;
  const int64_t first = tree[0].rowid;
  const RowQuery query{"msprobe_precision", "node", {"error", "units"}, first, first + tree.size() - 1};
  MSP_RETURN_IF_ERROR(ReadRows(file, query, [&](const SqlRow& row) {
    const uint32_t i = tree.AtRow(row.id);
    if (i == kNoNode) return OkStatus();
    if (out.empty()) out.resize(tree.size());
    const SqlValue &error = row.values[0], &units = row.values[1];
    if (error.IsNumber()) out[i].error = static_cast<float>(error.real);
    if (units.IsNumber()) out[i].units = static_cast<float>(units.real);
    return OkStatus();
  }));
  return out;
}

// How much a node asks to be looked at.
int Weight(const TreeNode& n, bool unmatched) {
  if (Begins(n.ruling)) return 6;
  if (n.level == Verdict::kError) return 5;
  if (n.overflow == Overflow::kCritical) return 4;
  if (n.level == Verdict::kWarning) return 3;
  if (n.overflow != Overflow::kNone) return 2;
  return unmatched ? 1 : 0;
}

void Grow(float value, std::optional<double>* largest) {
  if (!std::isnan(value) && (!*largest || value > **largest)) *largest = value;
}

void AddNode(const TreeNode& n, uint32_t i, bool unmatched, const Measured* m, LayerCell* cell, int* worst) {
  ++cell->nodes;
  cell->errors += n.level == Verdict::kError;
  cell->warnings += n.level == Verdict::kWarning;
  cell->unmatched += unmatched;
  cell->overflows += n.overflow != Overflow::kNone;
  cell->level = std::max(cell->level, n.level);
  cell->ruling = std::max(cell->ruling, n.ruling);
  cell->begins += Begins(n.ruling);
  if (m != nullptr) {
    Grow(m->error, &cell->error);
    Grow(m->units, &cell->units);
  }
  const int weight = Weight(n, unmatched);
  if (weight > *worst) {
    *worst = weight;
    cell->node = i;
  }
}

StatusOr<std::vector<LayerColumn>> FindLayers(const VisFile& file, const GraphSides& graph) {
  const Tree& tree = graph.target;
  MSP_ASSIGN_OR_RETURN(const std::vector<Measured> measured, LoadMeasured(file, tree));
  LayerFinder finder(tree);
  std::vector<LayerColumn> columns;
  std::vector<std::array<int, 2>> worst;
  for (uint32_t i = 0; i < tree.size(); ++i) {
    if (tree.Type(i) == kCollection) continue;
    const uint32_t column = finder.ColumnOf(i);
    if (column == kNoNode) continue;
    while (columns.size() < finder.labels().size()) columns.push_back({finder.labels()[columns.size()], {}, {}});
    worst.resize(columns.size(), {-1, -1});
    const bool backward = RunsBackward(tree, i);
    LayerColumn& into = columns[column];
    AddNode(tree[i], i, graph.compared && tree[i].partner == kNoNode,
            measured.empty() || IsEdited(graph, tree.Name(i)) ? nullptr : &measured[i],
            backward ? &into.backward : &into.forward, &worst[column][backward ? 1 : 0]);
  }
  return columns;
}

}  // namespace

StatusOr<std::vector<LayerColumn>> LoadLayers(const VisFile& file, const GraphSides& graph) {
  const std::lock_guard lock(graph.memo->layers_mutex);
  auto& known = graph.memo->layers;
  if (!known) {
    MSP_ASSIGN_OR_RETURN(known, FindLayers(file, graph));
  }
  return *known;
}

}  // namespace msprobe::view
