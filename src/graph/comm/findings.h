// What a graph shows to be wrong, as sentences: the first bad nodes, bad modules, communication that does not fit.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/message.h"
#include "graph/tree/finding_kind.h"

namespace msprobe {

class JsonWriter;

struct GraphFinding {
  FindingKind kind = FindingKind::kNone;
  std::string source = "NPU";  // side: "NPU" or "Bench"
  int step = 0, rank = 0;
  int64_t row_id = 0;  // of the node in tb_nodes; 0: none
  std::string node;
  Message text;
  std::vector<int> ranks = {};  // of merged ranks: those that the finding is about
  bool communication() const { return kind >= FindingKind::kMissingCall && kind <= FindingKind::kCallRoot; }
};

/// A line for each finding, at most some of a kind; "" without findings.
Message FindingsText(const std::vector<GraphFinding>& findings);
/// A JSON list.
void WriteFindings(JsonWriter* json, const std::vector<GraphFinding>& findings);

}  // namespace msprobe
