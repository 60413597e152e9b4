// What a graph shows to be wrong, as sentences: the first bad nodes, bad modules, communication that does not fit.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace msprobe {

struct GraphFinding {
  /// "first_error", "bad_module", "first_overflow", "bad_parameter", "bad_gradient", "missing_call", "call_order",
  /// "no_partner", "call_data", "call_root"; of merged ranks "replica", "layout", "suspect_rank".
  std::string kind;
  std::string source = "NPU";  // side: "NPU" or "Bench"
  int step = 0, rank = 0;
  int64_t row_id = 0;  // of the node in tb_nodes; 0: none
  std::string node;
  std::string text;
  std::vector<int> ranks = {};  // of merged ranks: those that the finding is about
  bool communication() const {
    return kind == "missing_call" || kind == "call_order" || kind == "no_partner" || kind == "call_data" ||
           kind == "call_root";
  }
};

/// A line for each finding, at most some of a kind; "" without findings.
std::string FindingsText(const std::vector<GraphFinding>& findings);
/// A JSON list.
std::string FindingsJson(const std::vector<GraphFinding>& findings);

}  // namespace msprobe
