#include <msprobe/graph.h>

#include "graph/visualize.h"

namespace msprobe {

StatusOr<GraphFile> WriteGraph(const GraphSettings& settings) {
  MSP_ASSIGN_OR_RETURN(const GraphSummary s, VisualizeGraph(settings));
  const auto [pass, warning, error] = s.levels;
  return GraphFile{s.file, s.bytes, s.graphs, s.npu_nodes, s.bench_nodes, pass, warning, error};
}

}  // namespace msprobe
