// The table msprobe_precision: how far each matched node is apart, in numbers, and what the ruler says of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compare/first_difference.h"
#include "graph/builder.h"
#include "graph/precision.h"
#include "graph/vis_db.h"

namespace msprobe {

/// How far the op of one node is apart. Collected while its row is made, on any thread.
struct NodeDistance {
  uint32_t op = kNoIndex;  // of the target's dump; of merged ranks the node
  int64_t row = 0;         // in tb_nodes
  OpDistance distance;
  float cosine = 0, max_abs_err = 0, max_relative_err = 0;  // tensor dumps: the worst results; NaN when not known
};

/// What one thread reuses from node to node.
class DistanceMeter {
 public:
  struct Options {
    GraphMode mode = GraphMode::kSummary;
    bool shapes = true;  // other shapes are a difference
  };
  /// Of two ops that stand against each other; `rows` say more where they are of tensors.
  NodeDistance Measure(const Options& options, uint32_t op, std::string_view name, const JsonValue& target,
                       std::string_view golden_name, const JsonValue& golden, const std::vector<Row>& rows);

 private:
  OpDiff diff_;
};

inline constexpr char kPrecisionColumns[] =
    "node INTEGER PRIMARY KEY, verdict TEXT, error REAL, input_error REAL, units REAL, cosine REAL, max_abs_err REAL, "
    "max_relative_err REAL";

/// Walks over all ops of a pair as `compare` does and writes a row for each distance. Takes the two dumps out of their
/// graphs. `mapped`: a mapping paired the nodes. Returns the answer of the walk: what made the first difference.
StatusOr<FirstDifference> WriteRuler(GraphMode mode, bool mapped, const std::vector<NodeDistance>& nodes,
                                     RankGraph* npu, RankGraph* bench, SideTable* table);

/// The same of two merged graphs: their matched nodes are written as dumps, in the order of the graphs, into a
/// directory below `output` that is removed again. Nodes of one side only are left out: those of another layout
/// communicate.
StatusOr<FirstDifference> WriteMergedRuler(bool mapped, std::vector<NodeDistance> nodes, const RankGraph& npu,
                                           const RankGraph& bench, const std::string& output, SideTable* table);

}  // namespace msprobe
