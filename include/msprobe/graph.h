// `msprobe graph_visualize` for programs.
#pragma once

#include <msprobe/export.h>
#include <msprobe/status.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace msprobe {

struct GraphSettings {
  std::string target;               // a rank, step or dump directory
  std::string golden;               // the same of the run that is right; empty: one run without a comparison
  std::string output = "./output";  // directory of the .vis.db file
  bool fuzzy = false;               // match nodes by shape where names differ
  bool overflow_check = false;
  std::function<void(int percent)> progress;             // may be empty
  std::function<void(const std::string& text)> warning;  // may be empty
};

struct GraphFile {
  std::string path;
  uint64_t bytes = 0;
  size_t graphs = 0;  // pairs of steps and ranks
  size_t target_nodes = 0, golden_nodes = 0;
  size_t pass = 0, warning = 0, error = 0;
};

MSPROBE_API StatusOr<GraphFile> WriteGraph(const GraphSettings& settings);

}  // namespace msprobe
