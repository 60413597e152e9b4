// Graphs built by several processes: each writes the graphs of one step and rank as a file of its own, a part, and one
// process puts the parts together as if it had built them all.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "compare/values/item_view.h"
#include "diagnose/divergence.h"
#include "graph/build/graph_summary.h"
#include "graph/comm/links.h"
#include "graph/db/vis_db.h"

namespace msprobe {

/// What a part says beside its tables. Row ids are those of the part.
struct GraphPart {
  int step = 0, rank = 0;  // whose graph it is
  CompareMode mode = CompareMode::kStatistics;
  GraphSummary summary;
  std::array<std::vector<RankNodeCalls>, 2> calls;  // NPU, Bench: they are linked when all ranks are there
  std::optional<RankFindings> found;                // of a comparison of values
};

/// As the bytes of msprobe_part, and back; kBadInput for what is not part.
std::string PackGraphPart(const GraphPart& part);
StatusOr<GraphPart> UnpackGraphPart(std::string_view bytes);
/// As a further table of a part.
Status WriteGraphPart(const GraphPart& part, VisDb* db);
/// kBadInput for what is not part, or that of another step or rank: machines that see other files count other graphs.
StatusOr<GraphPart> ReadGraphPart(const std::string& path, int step, int rank);
/// Row ids as they are behind `rows` rows.
void ShiftRows(int64_t rows, GraphPart* part);
/// Counts, first findings and damage of `more` behind those of `sum`.
void AddSummary(GraphSummary more, GraphSummary* sum);

}  // namespace msprobe
