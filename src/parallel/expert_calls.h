// Which calls of a rank work for its experts, where no modules were recorded (level L1): those between a communication
// that brings tokens to the ranks of their experts and the one that takes them back.
#pragma once

#include <cstdint>
#include <vector>

#include "parallel/merge_pool.h"

namespace msprobe {

/// Calls between tokens that come and tokens that go, in the order of the dump.
struct ExpertCalls {
  size_t begin = 0;  // how many calls of CallsOfRank::own come before
  std::vector<uint32_t> calls;
  bool backward = false;  // the last expert comes first
};

struct CallsOfRank {
  std::vector<uint32_t> own;  // all others
  std::vector<ExpertCalls> experts;
};

/// The communications of a rank do not tell it.
Status UnknownExpertCalls(const MergePool& pool, size_t stage, size_t cell);

/// Without experts where no tokens go to other ranks; kBadInput where it cannot be told.
StatusOr<CallsOfRank> FindExpertCalls(const MergePool& pool, size_t stage, size_t cell);

}  // namespace msprobe
