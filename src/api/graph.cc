#include <msprobe/graph.h>

#include "graph/build/visualize.h"

namespace msprobe {

StatusOr<GraphFile> WriteGraph(const GraphSettings& settings) {
  MSP_ASSIGN_OR_RETURN(const GraphSummary s, VisualizeGraph(settings));
  const auto [pass, warning, error] = s.levels;
  return GraphFile{s.file, s.bytes, s.graphs, s.target_nodes, s.golden_nodes, pass, warning, error};
}

}  // namespace msprobe
