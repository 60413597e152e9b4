// `msprobe graph_visualize` for programs.
#pragma once

#include <msprobe/export.h>
#include <msprobe/status.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace msprobe {

/// How the ranks of a run share a model.
struct ParallelLayout {
  int rank_size = 0, tp = 1, pp = 1, vpp = 1, cp = 1, ep = 1;
  std::string order = "tp-cp-ep-dp-pp";  // dimensions of the ranks, the fastest varying first
  std::string tensors;                   // YAML file that says how tensors are split; "": judged by their values
};

struct GraphSettings {
  std::string target;               // a rank, step or dump directory
  std::string golden;               // the same of the run that is right; empty: one run without a comparison
  std::string output = "./output";  // directory of the results
  bool fuzzy = false;               // match calls by name and order, whatever their call numbers
  bool overflow_check = false;
  /// Nodes are matched by where they are in the model: a YAML file with the children that have other names, or "".
  std::optional<std::string> layer_mapping;
  std::string thresholds;      // YAML file of the numbers by which nodes are judged, as of a comparison; ""
  std::string layer_template;  // one of LayerTemplates() instead of a file; ""
  std::optional<ParallelLayout> target_layout, golden_layout;  // given: the ranks are merged
  bool json_files = false;                                     // of merged ranks: JSON files instead of a database
  bool plain = false;                                          // the tables of mindstudio-probe and no others
  std::string ranks;                                           // only these: "0,3,8-15"; "" for all
  uint64_t out_limit = uint64_t{10} << 30;                     // bytes that may be written; 0 for no limit
  std::function<void(int percent)> progress;                   // may be empty
  std::function<void(const Message& text)> before;             // of many ranks: what will be written; may be empty
  std::function<void(const Message& text)> warning;            // may be empty
  std::function<void(const std::string& lines)> log;           // tensor dumps: a line for each item; may be empty
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
