// From nodes to rows of tb_nodes: reads the ops, compares them, writes the texts. Runs on many threads at once.
#pragma once

#include <vector>

#include "compare/values/op_diff.h"
#include "graph/build/graph_match.h"
#include "graph/build/layouts.h"
#include "graph/build/ruler_table.h"
#include "graph/comm/links.h"
#include "graph/db/vis_db.h"
#include "graph/flow/flow.h"
#include "graph/tree/builder.h"
#include "parallel/merge_data.h"

namespace msprobe {

/// One graph of a comparison or the only one of a build, and what its rows need.
struct GraphSide {
  const RankGraph* rank = nullptr;
  const NodeGraph* other = nullptr;  // graph that Node::match refers to
  GraphKey key;
  std::vector<uint32_t> stack_number;  // of each node: position of its stack in tb_stack
  std::vector<uint32_t> stack_ids;     // Node::stack of each tb_stack row
  /// Of each node: the texts and the overflow are known from the comparison. Null: of none.
  const std::vector<bool>* done = nullptr;
  std::vector<uint32_t> lone_gradients;  // LoneGradients()
};

/// What a link shows of the node it leads to.
std::string LinkIndex(bool overflow_check, Overflow overflow, Verdict verdict);

/// Fills what the rows need of a matched graph: stacks in the order of their first use, gradients without a partner.
void PrepareSide(GraphSide* side);
/// The frames of a stack id as a JSON list.
std::string StackJson(const RankGraph& rank, uint32_t stack);

struct RowOptions {
  CompareMode mode = CompareMode::kStatistics;
  bool compare = false;
  bool overflow_check = false;
  const TensorSource* tensors = nullptr;  // tensor mode: where the values lie
  bool log = false;                       // tensor mode: a line for each item
  bool distances = false;                 // also NodeBlock::distances
  bool merged = false;                    // graphs of several ranks
  LayoutDifference layouts = {};          // then: of how many
  Kinship kin = {};
  const GraphLinks* links = nullptr;  // then: items that stand at other places
  const WholeDumps* whole = nullptr;  // then, of merged graphs: dumps whose ops the links name
  const Thresholds* thresholds = &DefaultThresholds();
};

/// A weight or a gradient of one that is infinite or NaN.
struct BadParameter {
  size_t row = 0;  // of the block
  bool gradient = false;
  std::string name, value;  // "parameters.weight", "Max inf"
};

/// A block of rows with the communication calls and the distances among them; their row ids are positions in the block.
struct NodeBlock {
  NodeRows rows;
  std::vector<NodeCall> calls;
  std::vector<NodeDistance> distances;  // of matched nodes
  std::string log;
  uint64_t unread = 0;             // rows whose tensors could not be read
  std::string first_unread;        // and what is wrong with the first
  std::vector<FlowItem> items;     // of all rows
  std::vector<size_t> item_end;    // of each row
  std::vector<uint64_t> patterns;  // of each row: NamePatternHash
  std::vector<BadParameter> bad;
  std::vector<std::pair<size_t, MergeFinding>> merge;  // of merged graphs: what was found about which row
};

/// Rows of order[begin, end) of `side`. With `golden` (the golden side) every matched node is compared.
StatusOr<NodeBlock> MakeRows(const GraphSide& side, const GraphSide* golden, const RowOptions& options, size_t begin,
                             size_t end);

}  // namespace msprobe
