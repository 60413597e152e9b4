// Watches the rows of a graph on their way into the database: fills the tables that a page needs to be fast, and notes
// what is wrong.
#pragma once

#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "graph/build/node_rows.h"
#include "graph/comm/findings.h"
#include "graph/flow/flow.h"
#include "graph/flow/name_index.h"

namespace msprobe {

class GraphWatch {
 public:
  /// Without `db` only findings are made.
  GraphWatch(VisDb* db, bool compare) : db_(db), compare_(compare) {}
  Status MakeTables();
  /// One graph after another; its first row will have this id.
  void Begin(const GraphSide& side, int64_t first_row);
  /// Blocks in their order, with the final precision of each row.
  Status Add(const NodeBlock& block);
  Status End(std::vector<GraphFinding>* findings);
  Status AddExchanges(const std::vector<RankNodeCalls>& ranks, const CommGraph& graph);
  Status AddFindings(const std::vector<GraphFinding>& findings);

 private:
  /// Of a node with everything below it.
  struct Subtree {
    uint32_t nodes = 0, error = 0, warning = 0, unmatched = 0, no_data = 0, medium = 0, high = 0, critical = 0;
    uint32_t first_error = kNoIndex;                                           // place of a node
    uint32_t calls = 0, bad_calls = 0, first_bad = kNoIndex, node = kNoIndex;  // calls directly below
    bool has_calls = false, is_call = false, is_error = false;
    void Take(const Subtree& child);
  };
  struct Seen {
    uint32_t time = kNoIndex, node = kNoIndex;
  };

  Subtree Count(const NodeRows::Row& row);
  bool OverflowsAlike(const NodeRows::Row& row);
  void Note(const NodeRows::Row& row, const Subtree& tree, uint32_t time);
  Status WriteSubtree(const NodeRows::Row& row, const Subtree& tree);
  Status FlushEdges(uint32_t next);
  Status WriteExecution();
  Status WriteNames();
  void NoteBadParameter(const BadParameter& bad, const NodeRows::Row& row);
  GraphFinding Make(FindingKind kind, uint32_t node, Message text) const;
  std::string In(uint32_t node) const;
  const Node& NodeAt(uint32_t place) const;

  VisDb* db_;
  bool compare_;
  SideTable *subtrees_ = nullptr, *execution_ = nullptr, *names_ = nullptr, *flow_ = nullptr, *exchanges_ = nullptr,
            *findings_ = nullptr;
  int64_t graph_ = 0, exchange_ = 0;  // as msprobe_graph counts

  // Of the graph that is being written.
  const GraphSide* side_ = nullptr;
  int64_t first_row_ = 0;
  uint32_t time_ = 0;
  std::vector<Subtree> open_;    // finished nodes whose parents are still to come
  std::vector<uint32_t> times_;  // of each node
  std::optional<FlowFinder> finder_;
  std::vector<FlowEdge> edges_;
  uint32_t edges_from_ = 0;
  PatternIndex index_;
  Seen error_, bad_, critical_, gradient_;
  size_t bad_gradients_ = 0;
  Message gradient_text_;
  std::vector<GraphFinding> found_;
  size_t bad_modules_ = 0;
  std::unordered_set<std::string> bad_parameters_;
  std::vector<uint32_t> alike_;  // golden nodes that overflow as their partners do
};

}  // namespace msprobe
