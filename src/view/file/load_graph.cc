#include "view/file/load_graph.h"

#include <fmt/core.h>

#include "base/message.h"
#include "base/parallel.h"
#include "view/file/compact_graph.h"
#include "view/file/rulings.h"

namespace msprobe::view {
namespace {

Status LoadSides(const VisFile& file, int64_t step, int64_t rank, GraphSides* out) {
  // At the same time: the first look at a large graph is what a person waits for.
  return ParallelFor(2, [&](size_t side) {
    return side == 0 ? file.LoadSide(step, rank, "NPU", &out->target)
                     : file.LoadSide(step, rank, "Bench", &out->golden);
  });
}

}  // namespace

StatusOr<GraphSides> LoadGraph(const VisFile& file, int64_t step, int64_t rank) {
  GraphSides graph;
  bool loaded = false;
  if (file.compact()) {
    MSP_ASSIGN_OR_RETURN(loaded, LoadCompactGraph(file, step, rank, file.KnownNames(), &graph));
  }
  if (loaded) {
    file.KeepNames(graph.target.names());
  } else {
    MSP_RETURN_IF_ERROR(LoadSides(file, step, rank, &graph));
  }
  if (graph.target.empty() && graph.golden.empty()) {
    return BadInput(Msg("{} has no graph of step {} rank {}: choose from the steps and ranks that it lists",
                        file.shown(), step, rank));
  }
  graph.step = step;
  graph.rank = rank;
  graph.compared = file.config().compared;
  const auto link = [&](size_t side) -> Status {
    if (side == 0) MSP_RETURN_IF_ERROR(LoadRulings(file, &graph.target));
    Tree &tree = side == 0 ? graph.target : graph.golden, &other = side == 0 ? graph.golden : graph.target;
    tree.LinkPartners(other);
    tree.Count(graph.compared);
    return OkStatus();
  };
  MSP_RETURN_IF_ERROR(ParallelFor(2, link));
  return graph;
}

}  // namespace msprobe::view
