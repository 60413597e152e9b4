// `msprobe graph -i graph.json`, the form of release 8.1.1, which writes a .vis file of JSON for each rank.
#pragma once

#include <string>

#include "base/status.h"
#include "graph/build/visualize.h"

namespace msprobe {

/// Reads "npu_path" and "bench_path" of `input` (the options of the newer form must not name them, too) and writes
/// {build|compare}[_step{N}][_rank{N}]_TIME.vis into the output directory. Prints a line for each.
Status RunOlderGraph(GraphSettings options, const std::string& input);

}  // namespace msprobe
