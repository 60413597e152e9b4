// What a node has to do with others: the ops before and after it, where its values come from and go to, who it talks to
// on other ranks, and how far it is off. From the tables named msprobe_*; a file without them has the order only.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "graph/flow.h"
#include "view/tree.h"
#include "view/vis_file.h"

namespace msprobe::view {

/// A call on another rank, or another one of this rank, that takes part in the same exchange.
struct ExchangePartner {
  int64_t exchange = 0, step = 0, rank = 0;
  std::string name;
  bool gives = false, takes = false;
};

/// A row of msprobe_precision.
struct NodePrecision {
  std::string verdict;
  std::optional<double> error, input_error, units, cosine, max_abs_err;
};

struct NodeLinks {
  uint32_t previous = kNoNode, next = kNoNode;  ///< ops, in the order in which they ran
  bool flow_known = false;
  std::vector<FlowEdge> producers, consumers;  ///< at most kMostEdges each; nodes are places in the tree
  uint64_t producers_total = 0, consumers_total = 0;
  std::vector<ExchangePartner> partners;
  std::optional<NodePrecision> precision;

  static constexpr size_t kMostEdges = 200;
  static constexpr size_t kMostPartners = 2000;
};

/// The order of execution of one side.
class Execution {
 public:
  /// `source`: "NPU" or "Bench".
  static StatusOr<Execution> Load(const VisFile& file, const Tree& tree, int64_t step, int64_t rank,
                                  std::string_view source);
  /// The op that ran before (-1) or after (1); kNoNode at the ends, and for what did not run.
  uint32_t Beside(const Tree& tree, uint32_t node, int direction) const;
  struct Run {
    uint32_t first, count;
  };
  /// Nodes that stand together and ran one after the other.
  const std::vector<Run>& runs() const { return runs_; }

 private:
  std::vector<Run> runs_;
};

/// The node of a row of the file; kNoNode when it is none of this tree.
uint32_t NodeOfRow(const Tree& tree, int64_t row);

/// Calls `take` with every edge of the graph whose taker is in the rows of `from_row` or behind them; nodes are places
/// in the tree. Returns false when the file does not have them.
StatusOr<bool> ReadFlow(const VisFile& file, const Tree& tree, uint32_t from,
                        const std::function<void(const FlowEdge&)>& take);

/// Partners and precision only, of the node in this row.
Status LoadMeasured(const VisFile& file, int64_t row, NodeLinks* out);

StatusOr<NodeLinks> LoadLinks(const VisFile& file, const RankGraph& graph, bool npu, uint32_t node);

}  // namespace msprobe::view
