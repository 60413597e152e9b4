// The communication graph of a step: which call of one rank stands against which calls of other ranks, and from that a
// time that all ranks share. Call counts of different ranks say nothing about order; who waits for whom does.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/communication_call.h"
#include "dump/reader.h"

namespace msprobe {

/// A rank of a step and its dump.
struct RankDump {
  int rank = 0;
  const DumpFile* dump = nullptr;
};

/// A call that takes part in an event; `rank` and `call` are positions in CommGraph::ranks and CommRank::calls.
struct CommMember {
  uint32_t rank = 0, call = 0;
  bool gives = false, takes = false;  // values move from everyone who gives to everyone else who takes
};

/// One exchange with all who take part.
struct CommEvent {
  std::vector<CommMember> members;  // by rank
  std::vector<int> missing;         // ranks that should take part but have no such call in their dumps
};

/// A call's part in an event.
struct CommPart {
  uint32_t event = 0;
  bool gives = false, takes = false;
};

struct CommCall {
  size_t op = 0;                // index in the rank's dump
  std::string name;             // "Distributed.all_reduce.3.forward"
  std::string api;              // "all_reduce"
  std::vector<CommPart> parts;  // one; several for a batch_isend_irecv; none if the partner is not known
  /// Logical time: larger than that of every call that this one may depend on; equal for calls that depend on each
  /// other (all_reduce). The first calls have 1.
  uint32_t layer = 0;
};

struct CommRank {
  int rank = 0;
  size_t ops = 0;               // of the dump
  std::vector<CommCall> calls;  // in the order of the dump
  /// Position in `calls` of the first call at op `op` or behind it; calls.size() if there is none.
  size_t CallFrom(size_t op) const;
};

/// Where an op stands in logical time: behind the call of `layer` on its rank (0: before all calls), `sub` ops later
/// (0: it is that call). Comparing (layer, sub) never contradicts who depends on whom.
struct CommTime {
  uint32_t layer = 0;
  size_t sub = 0;
  auto operator<=>(const CommTime&) const = default;
};

/// The calls of one rank, before they are joined with those of others.
struct RankCalls {
  CommRank rank;
  std::vector<std::vector<CommTransfer>> transfers;  // for each call
};

struct CommGraph {
  std::vector<CommRank> ranks;  // by rank number
  std::vector<CommEvent> events;

  /// Position in `ranks`; kNoRank if the step has no such rank.
  static constexpr size_t kNoRank = SIZE_MAX;
  size_t IndexOf(int rank) const;
  CommTime TimeOf(size_t rank, size_t op) const;
  /// For each rank the first op that may depend on op `op` of `rank`, through values that calls pass on; the rank's
  /// number of ops where none does. For `rank` itself that is op + 1.
  std::vector<size_t> ReachedFrom(size_t rank, size_t op) const;
  /// Members of other ranks whose values reach this call.
  std::vector<CommMember> GiversOf(size_t rank, size_t call) const;
  /// Members of other ranks that this call's values reach.
  std::vector<CommMember> TakersOf(size_t rank, size_t call) const;
};

StatusOr<RankCalls> ReadCalls(int rank, const DumpFile& dump);

/// Those of a rank whose dump has the same bytes.
RankCalls SameCallsOf(const RankCalls& calls, int rank);

/// Joins the calls of all ranks: the n-th send of a rank to another with the n-th receive
/// there, the n-th call of a collective in a group on all its ranks. Does not depend on the order of `ranks`.
CommGraph JoinCalls(std::vector<RankCalls> ranks);

/// Both for all ranks of a step.
StatusOr<CommGraph> ReadCommunication(std::vector<RankDump> dumps);

}  // namespace msprobe
