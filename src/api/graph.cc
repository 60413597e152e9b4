#include <msprobe/graph.h>

#include "graph/visualize.h"

namespace msprobe {

StatusOr<GraphFile> WriteGraph(const GraphSettings& settings) {
  GraphOptions options;
  options.target = settings.target;
  options.golden = settings.golden;
  options.output = settings.output;
  options.fuzzy = settings.fuzzy;
  options.overflow_check = settings.overflow_check;
  options.progress = settings.progress;
  options.warning = settings.warning;
  MSP_ASSIGN_OR_RETURN(const GraphSummary s, VisualizeGraph(options));
  const auto [pass, warning, error] = s.levels;
  return GraphFile{s.file, s.bytes, s.graphs, s.npu_nodes, s.bench_nodes, pass, warning, error};
}

}  // namespace msprobe
