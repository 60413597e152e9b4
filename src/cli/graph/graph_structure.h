// The models of a graph's two runs compared as structures: a short list for the terminal, the whole one as a file
// beside the graph, a layer mapping to confirm.
#pragma once

#include <msprobe/graph.h>

#include <string>

#include "base/status.h"

namespace msprobe {

struct GraphStructureOptions {
  bool always = false;          // for dumps of any task; else only where both are structure dumps
  std::string suggest_mapping;  // file for -lm; "" for none
};

struct GraphStructures {
  Message text;      // "" when structures were not compared
  std::string json;  // of the summary: a list with an object for each step and rank; "" as above
};

/// Of the pairs that the graph `file` was made of; those that cannot be read are left out, the graph has named them.
StatusOr<GraphStructures> CompareGraphStructures(const GraphSettings& settings, const GraphStructureOptions& options,
                                                 const std::string& file);

}  // namespace msprobe
