#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>
#include <unordered_map>

#include "match/layer_place.h"
#include "match/op_name.h"
#include "view/file_rows.h"
#include "view/graph_memo.h"
#include "view/overview.h"
#include "view/recompare.h"

namespace msprobe::view {
namespace {

struct Measured {
  bool blame = false;  // bug or suspicious
  float error = std::numeric_limits<float>::quiet_NaN(), units = std::numeric_limits<float>::quiet_NaN();
};

// One entry a node; empty when the file does not measure.
StatusOr<std::vector<Measured>> LoadMeasured(const VisFile& file, const Tree& tree) {
  std::vector<Measured> out;
  if (!file.compact() || tree.empty()) return out;
  const int64_t first = tree[0].rowid;
  const RowQuery query{"msprobe_precision", "node", {"verdict", "error", "units"}, first, first + tree.size() - 1};
  MSP_RETURN_IF_ERROR(ReadRows(file, query, [&](const SqlRow& row) {
    const uint32_t i = NodeOfRow(tree, row.id);
    if (i == kNoNode) return OkStatus();
    if (out.empty()) out.resize(tree.size());
    const SqlValue &verdict = row.values[0], &error = row.values[1], &units = row.values[2];
    out[i].blame = verdict.text == "bug" || verdict.text == "suspicious";
    if (error.IsNumber()) out[i].error = static_cast<float>(error.real);
    if (units.IsNumber()) out[i].units = static_cast<float>(units.real);
    return OkStatus();
  }));
  return out;
}

bool Backward(std::string_view name) {
  const OpDirection direction = ParseOpName(name).direction;
  return direction == OpDirection::kBackward || direction == OpDirection::kParameterGrad;
}

// "model.norm" of "Module.model.norm.RMSNorm.forward.0"; "" of what is no module.
std::string_view ModulePath(std::string_view name) {
  std::string_view base = ParseOpName(name).base;
  const size_t dot = base.find('.');
  if (base.substr(0, dot) != "Module" && base.substr(0, dot) != "Cell") return {};
  base.remove_prefix(std::min(dot + 1, base.size()));
  const size_t type = base.rfind('.');
  return type == std::string_view::npos ? base : base.substr(0, type);
}

// What has no number of its own: a module, what a module calls beside its layers, or what is called outside of modules.
std::string PlainLabel(std::string_view name, std::string_view parent) {
  if (const std::string_view path = ModulePath(name); !path.empty()) return std::string(path);
  if (const std::string_view path = ModulePath(parent); !path.empty()) return std::string(path) + ".*";
  const size_t dot = name.find('.');
  return name.find("Apis_Between_Modules") == 0 || dot == std::string_view::npos ? std::string(name.substr(0, dot))
                                                                                 : "*";
}

class LayerFinder {
 public:
  explicit LayerFinder(const Tree& tree)
      : tree_(tree), columns_of_(tree.size(), kUnknown), mixed_(tree.size()), in_layer_(tree.size()) {
    for (uint32_t i = 0; i < tree.size(); ++i) {
      if (PlaceOfModule(tree.Name(i)).layer < 0) continue;
      in_layer_[i] = true;
    }
    for (uint32_t i = 0; i < tree.size(); ++i) {
      if (!in_layer_[i]) continue;
      // A module that is in a layer itself does not hold layers, whatever is below it.
      for (uint32_t up = tree.Parent(i); up != kNoNode && !mixed_[up]; up = tree.Parent(up)) {
        if (in_layer_[up]) break;
        mixed_[up] = true;
      }
    }
  }

  // kNoNode: shown in no column.
  uint32_t ColumnOf(uint32_t node) {
    std::vector<uint32_t> way;
    uint32_t found = kUnknown;
    for (uint32_t i = node; found == kUnknown; i = tree_.Parent(i)) {
      if (columns_of_[i] != kUnknown) {
        found = columns_of_[i];
        break;
      }
      way.push_back(i);
      const uint32_t up = tree_.Parent(i);
      if (in_layer_[i]) {
        found = Column(LayerLabel(PlaceOfModule(tree_.Name(i))));
      } else if (mixed_[i] || up == kNoNode) {
        found = kNoNode;  // holds layers itself
      } else if (mixed_[up] || tree_.Parent(up) == kNoNode) {
        found = Column(PlainLabel(tree_.Name(i), tree_.Name(up)));
      }
    }
    for (const uint32_t i : way) columns_of_[i] = found;
    return found;
  }
  std::vector<LayerColumn>& columns() { return columns_; }

 private:
  static constexpr uint32_t kUnknown = kNoNode - 1;

  static std::string LayerLabel(const LayerPlace& place) {
    std::string_view stack = place.stack;
    const size_t dot = stack.find('.');
    if (dot != std::string_view::npos) stack.remove_prefix(dot + 1);
    return std::string(stack) + "." + std::to_string(place.layer);
  }
  uint32_t Column(std::string label) {
    const auto [at, is_new] = by_label_.try_emplace(label, static_cast<uint32_t>(columns_.size()));
    if (!is_new) return at->second;
    if (columns_.size() >= kMostLayers) return at->second = kNoNode;
    columns_.push_back({std::move(label), {}, {}});
    return at->second;
  }

  const Tree& tree_;
  std::vector<uint32_t> columns_of_;
  std::vector<bool> mixed_;     // has a layer below it
  std::vector<bool> in_layer_;  // by its own name
  std::unordered_map<std::string, uint32_t> by_label_;
  std::vector<LayerColumn> columns_;
};

// How much a node asks to be looked at.
int Weight(const TreeNode& n, bool unmatched, const Measured* m) {
  if (m != nullptr && m->blame) return 6;
  if (n.level == Level::kError) return 5;
  if (n.overflow == Overflow::kCritical) return 4;
  if (n.level == Level::kWarning) return 3;
  if (n.overflow != Overflow::kNone) return 2;
  return unmatched ? 1 : 0;
}

void Grow(float value, std::optional<double>* largest) {
  if (!std::isnan(value) && (!*largest || value > **largest)) *largest = value;
}

void AddNode(const TreeNode& n, uint32_t i, bool unmatched, const Measured* m, LayerCell* cell, int* worst) {
  ++cell->nodes;
  cell->errors += n.level == Level::kError;
  cell->warnings += n.level == Level::kWarning;
  cell->unmatched += unmatched;
  cell->overflows += n.overflow != Overflow::kNone;
  cell->level = std::max(cell->level, n.level);
  if (m != nullptr) {
    Grow(m->error, &cell->error);
    Grow(m->units, &cell->units);
  }
  const int weight = Weight(n, unmatched, m);
  if (weight > *worst) {
    *worst = weight;
    cell->node = i;
  }
}

StatusOr<std::vector<LayerColumn>> FindLayers(const VisFile& file, const RankGraph& graph) {
  const Tree& tree = graph.npu;
  MSP_ASSIGN_OR_RETURN(const std::vector<Measured> measured, LoadMeasured(file, tree));
  LayerFinder finder(tree);
  std::vector<std::array<int, 2>> worst;
  for (uint32_t i = 0; i < tree.size(); ++i) {
    if (tree.Type(i) == 9) continue;
    const uint32_t column = finder.ColumnOf(i);
    if (column == kNoNode) continue;
    worst.resize(finder.columns().size(), {-1, -1});
    const bool backward = Backward(tree.Name(i));
    LayerColumn& into = finder.columns()[column];
    AddNode(tree[i], i, graph.compared && tree[i].partner == kNoNode,
            measured.empty() || IsEdited(graph, tree.Name(i)) ? nullptr : &measured[i],
            backward ? &into.backward : &into.forward, &worst[column][backward ? 1 : 0]);
  }
  return std::move(finder.columns());
}

}  // namespace

StatusOr<std::vector<LayerColumn>> LoadLayers(const VisFile& file, const RankGraph& graph) {
  const std::lock_guard lock(graph.memo->layers_mutex);
  auto& known = graph.memo->layers;
  if (!known) {
    MSP_ASSIGN_OR_RETURN(known, FindLayers(file, graph));
  }
  return *known;
}

}  // namespace msprobe::view
