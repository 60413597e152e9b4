// What a person looks at before any node: how bad each rank is at each step, what was found, and how the error runs
// through the layers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "view/file/graph_sides.h"
#include "view/file/vis_file.h"
#include "view/query/answers.h"

namespace msprobe::view {

/// By step, then rank. At most kMostCells.
inline constexpr size_t kMostCells = 20000;
StatusOr<std::vector<OverviewCell>> LoadMatrix(const VisFile& file);

inline constexpr size_t kMostFindings = 200;
/// What the tool says of the whole file: the object that StoryJson() wrote, kNoVerdict for a file without one.
StatusOr<std::string> LoadVerdict(const VisFile& file);
inline constexpr std::string_view kNoVerdict = R"({"version":0})";

StatusOr<Findings> LoadFindings(const VisFile& file, int64_t step, int64_t rank);

/// In the order in which they ran first. What stands in no layer is put together by the module that holds it.
StatusOr<std::vector<LayerColumn>> LoadLayers(const VisFile& file, const GraphSides& graph);

}  // namespace msprobe::view
