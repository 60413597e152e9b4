// Who diverged first: over all ranks of a step, the op that makes the difference, apart from those that inherit it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compare/first_difference/first_difference.h"
#include "diagnose/anatomy/anatomy.h"
#include "diagnose/anatomy/evidence.h"
#include "diagnose/communication.h"
#include "diagnose/replay_result.h"
#include "diagnose/shared_name.h"
#include "dump/gaps.h"

namespace msprobe {

/// Ops of one module in one direction on one rank that inherit a difference.
struct InfectedGroup {
  int rank = -1;
  SharedName module;  // "layers.1.mlp"; "" for ops outside all modules
  bool backward = false;
  size_t first_op = 0;  // index in the rank's dump; behind what the rank takes for the beginning, where one is
  SharedName first;     // its name
  uint64_t ops = 0;
};

/// An op that begins a difference as far as its own rank knows; the verdict tells where that is not so.
struct BegunOp {
  size_t op = 0;
  int64_t row = 0;  // of its node in a graph file; 0 elsewhere
  RulerVerdict verdict = RulerVerdict::kNone;
  uint32_t group = 0;  // of RankFindings::infected, which counts it, too
};

/// What one rank says; small enough to be kept for every rank of a step.
struct RankFindings {
  enum Mark : uint8_t { kStartsApart = 1, kEndsApart = 2, kReadsUnwritten = 4 };

  int rank = -1;  // -1: not known, for two files
  FilePair files;
  Differences differences;
  RankCalls calls;
  BigArray<uint8_t> marks;  // for each op of the target
  std::vector<BegunOp> begun;
  std::vector<InfectedGroup> infected;
  uint64_t target_only = 0, golden_only = 0;       // ops without a partner
  std::vector<RecordingGap> gaps;                  // of both sides
  uint64_t unseen = 0;                             // ops that a side that is not whole may have had
  uint64_t unread = 0;                             // rows whose tensors could not be read
  std::string first_unread;                        // and what is wrong with the first
  std::shared_ptr<const OriginEvidence> evidence;  // of how the answer is wrong; null where nothing can be said
};

/// "layers.1.mlp.down_proj" of "Module.layers.1.mlp.down_proj.Linear.forward.0".
std::string_view ModulePath(std::string_view name);

/// The findings of one pair, from what its comparison measured; `calibrated` as for FindDifferences. What they hold of
/// each op (verdicts, contexts) goes to `per_op`, when given, or away: a step keeps the findings of all its ranks.
StatusOr<RankFindings> FindOnRank(const DumpPair& pair, const FilePair& files, OpDistances distances,
                                  const BigArray<float>* calibrated = nullptr, Differences* per_op = nullptr);

/// What a rank has in common with those before it is kept once.
void ShareNames(SharedNames* names, RankFindings* found);

/// Those of `files`, which hold the same bytes as the files of `found`.
RankFindings SameFindingsOf(const RankFindings& found, const FilePair& files);

/// A rank at which a difference starts.
struct Origin {
  int rank = -1;
  std::vector<int> ranks;   // all that make the same difference at the same op, with `rank`
  bool collective = false;  // the call itself makes it: what its ranks put in agrees
  FirstDifference difference;
  std::string golden_dump, target_dump;  // of `rank`
  std::optional<ReplayedOp> replay;      // in float64, where that was asked for
  std::shared_ptr<const OriginEvidence> evidence;
  std::optional<Anatomy> anatomy;  // how it is wrong; nothing where that was not looked for
};

/// How a rank came to a difference that another made.
struct Handover {
  int rank = -1;
  std::vector<int> from;
  std::string op;  // the call through which it came; "" if none was recorded
};

/// An op that seems to begin a difference to its own rank, and only passes on that of an origin.
struct Carrier {
  std::string target_dump;
  BegunOp op;
};

struct Divergence {
  int step = -1;
  bool found = false;
  Origin creator;
  std::vector<Origin> others;        // differences that start elsewhere and do not come from the creator
  std::vector<Handover> handovers;   // in the order of logical time
  std::vector<Carrier> carriers;     // by rank
  std::vector<RulerVerdict> unread;  // of calls that bring memory which nobody wrote and nothing reads
  /// In the order of logical time, without the creator: the first of so many groups.
  std::vector<InfectedGroup> infected;
  size_t infected_groups = 0;
  /// The ops of the first few modules that are reached, in both directions, and whether there are others.
  std::vector<std::pair<std::string, uint64_t>> infected_modules;
  bool more_modules = false;
  uint64_t infected_ops = 0, infected_forward = 0, infected_backward = 0;
  std::vector<std::pair<int, uint64_t>> infected_by_rank;
  std::vector<std::string> evidence;  // sentences
};

/// Joins the findings of all ranks of one step. Does not depend on their order.
StatusOr<Divergence> FindDivergence(int step, std::vector<RankFindings> ranks);

}  // namespace msprobe
