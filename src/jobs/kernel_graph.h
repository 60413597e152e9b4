// Kernel dumps as dumps of modules: what graph_visualize shows of them. Each scope of the graph is a Cell and each run
// of a kernel an op below it, in the order in which MindSpore launched them.
#pragma once

#include <functional>
#include <string>

#include "base/status.h"

namespace msprobe {

/// Writes dump.json, construct.json and stack.json of each step and rank below `root` to {out}/step{N}/rank{N}, with
/// statistics; those of files are computed. kBadInput when `root` holds no kernels.
Status WriteKernelsAsDump(const std::string& root, const std::string& out,
                          const std::function<void(const Message&)>& warning);

}  // namespace msprobe
