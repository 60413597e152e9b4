// Which communication call of one rank talks to which call of another.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "graph/params.h"

namespace msprobe {

struct P2pOp {
  std::string op, peer, group_id;  // "isend" or "irecv"
};

/// A Distributed.* node, reduced to what linking asks.
struct LinkedCall {
  std::string node;
  std::string api;
  std::string peer;  // value of src, dst or argument 1, where the call has one
  bool has_peer = false;
  std::vector<int64_t> group;
  std::string group_id;
  std::vector<P2pOp> batch;   // of batch_isend_irecv
  std::string index = "Nan";  // what a link to this node shows: its precision, or its overflow level
  int64_t row_id = 0;
};

struct LinkedRank {
  int rank = 0;
  std::vector<LinkedCall> calls;  // in the order of collection
};

/// Reads the call from its parameters and, for batches, from its entry in dump.json.
LinkedCall ReadLinkedCall(std::string_view node, const ParamList& params, const JsonValue& op);

/// Row ids with the JSON of column matched_distributed, for all calls that found a partner.
std::vector<std::pair<int64_t, std::string>> LinkCalls(const std::vector<LinkedRank>& ranks);

}  // namespace msprobe
