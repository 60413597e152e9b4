// `msprobe graph_visualize`: dumps in, one `.vis.db` out.
#pragma once

#include <msprobe/graph.h>

#include <functional>
#include <optional>
#include <string>

#include "base/status.h"
#include "graph/build/graph_summary.h"

namespace msprobe {

/// How several processes share the graphs of a run.
struct GraphParts {
  /// Build only this pair of the plan, as part_<N>.vis.db in the output directory.
  std::optional<size_t> only;
  /// Given: parts are made elsewhere. `begin` is told how many there are, and `file` returns the next one, in order, or
  /// why there is none.
  std::function<Status(size_t pairs)> begin;
  std::function<StatusOr<std::string>(size_t pair)> file;
};

StatusOr<GraphSummary> VisualizeGraph(const GraphSettings& options, const GraphParts& parts = {});

}  // namespace msprobe
