// The rows of a graph, as they go into a `.vis.db` file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compare/values/verdict.h"
#include "graph/node/overflow.h"

namespace msprobe {

/// Columns that all rows of one graph share.
struct GraphKey {
  std::string source;  // "NPU" or "Bench"
  int step = 0, rank = 0;
  std::optional<std::string> data_dir;
  std::string id() const { return source + "_" + std::to_string(step) + "_" + std::to_string(rank); }
};

/// precision_index of a node that was compared: 0, 0.5 or 1.
inline double PrecisionIndex(Verdict v) { return v == Verdict::kError ? 1 : v == Verdict::kWarning ? 0.5 : 0; }

/// Rows of nodes with their texts, packed, in one buffer.
struct NodeRows {
  struct Span {
    uint64_t begin = 0, size = 0;
  };
  struct Row {
    uint32_t node = 0, order = 0;
    uint32_t stack = 0;      // number of its row in tb_stack
    uint32_t name_hash = 0;  // HashName() of the node's name; 0 when it was not taken
    Verdict verdict = Verdict::kNone;
    Overflow overflow = Overflow::kNone;
    bool distributed = false;
    Span input, output;  // of size 0: no parameters
    Span merge_info;     // JSON list; of size 0: not merged
    /// What was found about the partner on the golden side while it was read for the comparison.
    bool has_partner = false;
    Overflow partner_overflow = Overflow::kNone;
    Span partner_input, partner_output;
  };
  std::string text;
  std::vector<Row> rows;
};

}  // namespace msprobe
