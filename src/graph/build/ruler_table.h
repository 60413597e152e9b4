// The table msprobe_precision: how far each matched node is apart, in numbers, and what the ruler says of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compare/values/op_diff.h"
#include "diagnose/divergence.h"
#include "graph/build/graph_match.h"
#include "graph/db/vis_db.h"
#include "graph/tree/builder.h"
#include "parallel/layout_difference.h"
#include "parallel/merge_suspects.h"

namespace msprobe {

/// How far the op of one node is apart. Collected while its row is made, on any thread.
struct NodeDistance {
  uint32_t op = kNoIndex;  // of the target's dump; of merged ranks the node
  int64_t row = 0;         // in tb_nodes
  OpDistance distance;
  ShownErrors shown;
  std::vector<WrongPart> wrong;                             // of merged graphs: ranks that made it
  float cosine = 0, max_abs_err = 0, max_relative_err = 0;  // tensor dumps: the worst results; NaN when not known
};

struct DistanceOptions {
  CompareMode mode = CompareMode::kStatistics;
  bool shapes = true;    // other shapes are a difference
  bool resplit = false;  // of two layouts
  Kinship kin;
  const TensorSource* tensors = nullptr;  // tensor mode: where the values lie
};

/// Of two ops whose items stand in `diff`. They are paired as tables do, so the rows of `diff` are others then.
NodeDistance MeasureDistance(const DistanceOptions& options, uint32_t op, OpDiff* diff);

inline constexpr char kPrecisionColumns[] =
    "node INTEGER PRIMARY KEY, verdict TEXT, error REAL, input_error REAL, units REAL, cosine REAL, max_abs_err REAL, "
    "max_relative_err REAL";

/// Whose pair it is, and where the answer of its walk goes.
struct RulerPair {
  FilePair files;
  CompareMode mode = CompareMode::kStatistics;
  bool mapped = false;  // a mapping paired the nodes
  Kinship kin;
  const TensorSource* tensors = nullptr;  // tensor mode: where the values lie
  const GraphLinks* links = nullptr;      // of two frameworks: items that stand at other places
  const WholeDumps* whole = nullptr;      // then, of merged graphs: dumps whose ops the links name
  LayoutDifference layouts = {};          // of merged graphs
  const Thresholds* thresholds = &DefaultThresholds();
  int ranks_of_job = 0;  // of merged graphs: of all of them together
};

/// Walks over all ops of a pair as `compare` does and writes a row for each distance. Takes the two dumps out of their
/// graphs. Returns what the rank says of the run.
StatusOr<RankFindings> WriteRuler(const RulerPair& of, const std::vector<NodeDistance>& nodes, RankGraph* target,
                                  RankGraph* golden, SideTable* table);

/// The same of two merged graphs: their matched nodes are written as dumps, in the order of the graphs, into a
/// directory below `output` that is removed again. Nodes of one side only are left out: those of another layout
/// communicate.
StatusOr<RankFindings> WriteMergedRuler(const RulerPair& of, std::vector<NodeDistance> nodes, const RankGraph& target,
                                        const RankGraph& golden, const std::string& output, SideTable* table);

}  // namespace msprobe
