// Which communication call of one rank talks to which call of another.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "diagnose/communication.h"
#include "graph/comm/comm_data.h"

namespace msprobe {

/// A Distributed.* node, reduced to what linking and the findings ask.
struct NodeCall {
  std::string node;
  std::string api;
  std::vector<CommTransfer> transfers;  // one; several for a batch
  std::vector<CommData> data;           // of each transfer
  std::string index = "Nan";            // what a link to this node shows: its precision, or its overflow level
  uint32_t line = 0;                    // when it started, in units of its rank
  int64_t row_id = 0;                   // 0: no node shows it
  int shown = -1;                       // rank of the graph that shows it, where several ranks are merged; -1: its own
};

struct RankNodeCalls {
  /// The graph to look at for this call.
  int ShownAt(const NodeCall& call) const { return call.shown < 0 ? rank : call.shown; }
  int rank = 0;
  bool truncated = false;       // the dump of the rank ends early
  std::vector<NodeCall> calls;  // by line after SortCalls
};

/// Reads the call from its entry in dump.json; no transfers when it moves nothing between ranks.
NodeCall ReadNodeCall(std::string_view node, const JsonValue& op, int rank);

/// By rank and line; then the ranks of groups that calls only name are known, too.
void SortCalls(std::vector<RankNodeCalls>* ranks);

/// The exchanges among all ranks. Ranks and calls of the result are those of `ranks`, which are sorted.
CommGraph JoinNodeCalls(const std::vector<RankNodeCalls>& ranks);

/// Row ids with the JSON of column matched_distributed, for all nodes whose calls found a partner shown by another
/// node.
std::vector<std::pair<int64_t, std::string>> LinkCalls(const std::vector<RankNodeCalls>& ranks, const CommGraph& graph);

}  // namespace msprobe
