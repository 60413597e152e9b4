// Who diverged first: over all ranks of a step, the op that makes the difference, apart from those that inherit it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compare/first_difference.h"
#include "diagnose/communication.h"
#include "diagnose/replay_result.h"

namespace msprobe {

/// Differing ops of one module in one direction, on one rank.
struct InfectedGroup {
  int rank = -1;
  std::string module;  // "layers.1.mlp"; "" for ops outside all modules
  bool backward = false;
  size_t first_op = 0;  // index in the rank's dump
  std::string first;    // its name
  uint64_t ops = 0;
};

/// What one rank says; small enough to be kept for every rank of a step.
struct RankFindings {
  enum Mark : uint8_t { kStartsApart = 1, kEndsApart = 2 };

  int rank = -1;  // -1: not known, for two files
  FilePair files;
  Differences differences;
  RankCalls calls;
  BigArray<uint8_t> marks;  // for each op of the target
  std::vector<InfectedGroup> infected;
};

/// "layers.1.mlp.down_proj" of "Module.layers.1.mlp.down_proj.Linear.forward.0".
std::string_view ModulePath(std::string_view name);

/// The findings of one pair, from what its comparison measured; `calibrated` as for FindDifferences.
StatusOr<RankFindings> FindOnRank(const DumpPair& pair, const FilePair& files, OpDistances distances,
                                  const BigArray<float>* calibrated = nullptr);

/// A rank at which a difference starts.
struct Origin {
  int rank = -1;
  std::vector<int> ranks;   // all that make the same difference at the same op, with `rank`
  bool collective = false;  // the call itself makes it: what its ranks put in agrees
  FirstDifference difference;
  std::string golden_dump, target_dump;  // of `rank`
  std::optional<ReplayedOp> replay;      // in float64, where that was asked for
};

/// How a rank came to a difference that another made.
struct Handover {
  int rank = -1;
  std::vector<int> from;
  std::string op;  // the call through which it came; "" if none was recorded
};

struct Divergence {
  int step = -1;
  bool found = false;
  Origin creator;
  std::vector<Origin> others;           // differences that start elsewhere and do not come from the creator
  std::vector<Handover> handovers;      // in the order of logical time
  std::vector<InfectedGroup> infected;  // in the order of logical time, without the creator
  uint64_t infected_ops = 0, infected_forward = 0, infected_backward = 0;
  std::vector<std::pair<int, uint64_t>> infected_by_rank;
  std::vector<std::string> evidence;  // sentences
};

/// Joins the findings of all ranks of one step. Does not depend on their order.
StatusOr<Divergence> FindDivergence(int step, std::vector<RankFindings> ranks);

/// The content of first_divergence.json; see docs/en/compare/first_divergence.md.
std::string DivergenceJson(const Divergence& d);

/// For people: a paragraph.
std::string DivergenceText(const Divergence& d);

}  // namespace msprobe
