// Weights that two stages of a pipeline hold (the table of words as the head): each stage has a summand of the
// gradient.
#pragma once

#include <span>
#include <vector>

#include "compare/values/op_diff.h"
#include "graph/tree/builder.h"

namespace msprobe {

/// Nodes of gradients of parameters that nothing of the other side stands against; of merged calls without modules,
/// those that add to memory.
std::vector<uint32_t> LoneGradients(const RankGraph& rank);

/// A side of two graphs, with its LoneGradients().
struct LoneSide {
  const RankGraph& rank;
  std::span<const uint32_t> gradients;
};

/// For the gradients of a module's parameters, and calls that add them up, of graphs of two layouts: where one side has
/// the whole and the other a summand of it, with the rest in a lone gradient, ItemView::other_part is set. Means of
/// summands add up.
Status FitTiedGradients(const LoneSide& target, const LoneSide& golden, CompareMode mode, OpDiff* op);

}  // namespace msprobe
