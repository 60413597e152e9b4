// One communication call as one rank made it: with whom, and which way values move.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "json/value.h"

namespace msprobe {

/// One exchange of a call. A batch_isend_irecv holds several, every other call one.
struct CommTransfer {
  enum class Kind : uint8_t {
    kPair,   // from one rank to one other: send, recv
    kGroup,  // among a group: all_reduce, broadcast, ...
  };
  Kind kind = Kind::kGroup;
  bool gives = false;      // what this rank puts in reaches others
  bool takes = false;      // what others put in reaches this rank
  int peer = kUnknown;     // kPair: the other rank
  int tag = 0;             // kPair
  int root = kUnknown;     // kGroup: the rank that gives (broadcast, scatter) or takes (reduce, gather) for all
  std::vector<int> group;  // ranks of the group in ascending order; empty for the default group
  std::string group_name;  // where the dump has nothing else: NameGroups() finds the ranks
  static constexpr int kUnknown = -1;
};

/// Reads the exchanges of the call `api` from its entry in dump.json. Arguments may stand at their positions or under
/// their names; ranks within a group (group_src, group_dst) become ranks of the run.
std::vector<CommTransfer> ReadTransfers(std::string_view api, const JsonValue& op, int own_rank);

/// The group that a call names.
void ReadGroup(const JsonValue& op, CommTransfer* out);

/// MindSpore names a group and does not list its ranks. A name stands for one group in a whole run, so its ranks are
/// those that call with it.
struct NamedCalls {
  int rank = 0;
  std::vector<CommTransfer*> transfers;
};
void NameGroups(const std::vector<NamedCalls>& ranks);

}  // namespace msprobe
