// What a person looks at before any node: how bad each rank is at each step, what was found, and how the error runs
// through the layers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "view/node_links.h"
#include "view/tree.h"
#include "view/vis_file.h"

namespace msprobe::view {

/// Counts over the graph of a rank at a step, of the side looked at.
struct OverviewCell {
  int64_t step = 0, rank = 0;
  uint64_t nodes = 0, error = 0, warning = 0, unmatched = 0, medium = 0, high = 0, critical = 0;
};

/// By step, then rank. At most kMostCells.
inline constexpr size_t kMostCells = 20000;
StatusOr<std::vector<OverviewCell>> LoadMatrix(const VisFile& file);

/// A row of msprobe_findings, or "origin": the first node that is to blame itself by msprobe_precision.
struct Finding {
  std::string kind, side, name, text;
  std::optional<NodePrecision> precision;
};

struct Findings {
  uint64_t total = 0;
  std::vector<Finding> list;  ///< the most telling first, at most kMostFindings
  uint64_t inherited = 0;     ///< nodes that only pass on what they got
  bool known = false;         ///< false: the file was not written with findings
};
inline constexpr size_t kMostFindings = 200;
StatusOr<Findings> LoadFindings(const VisFile& file, int64_t step, int64_t rank);

/// One direction of a layer.
struct LayerCell {
  uint32_t nodes = 0, errors = 0, warnings = 0, unmatched = 0, overflows = 0;
  Level level = Level::kNone;
  std::optional<double> error, units;  ///< the largest of its nodes
  uint32_t node = kNoNode;             ///< where to look: the first of the worst
};

struct LayerColumn {
  std::string label;  ///< "model.layers.3", "lm_head"
  LayerCell forward, backward;
};
inline constexpr size_t kMostLayers = 2000;  ///< further ones are left out

/// In the order in which they ran first. What stands in no layer is put together by the module that holds it.
StatusOr<std::vector<LayerColumn>> LoadLayers(const VisFile& file, const RankGraph& graph);

}  // namespace msprobe::view
