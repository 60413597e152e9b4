// Which op of the target run stands against which op of the golden run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/big_array.h"
#include "base/message.h"
#include "match/fused_plan.h"
#include "match/name_sequence.h"

namespace msprobe {

class JsonWriter;

inline constexpr uint32_t kNoOp = UINT32_MAX;

struct MatchOptions {
  bool fuzzy = false;  // ignore call numbers: align the two sequences of ops
  bool exact = false;  // names must be equal as they stand (debug.json)
};

/// The partner of one item, by its position in the op (".input.0").
struct ItemLink {
  std::string target, golden;
  uint32_t golden_op = kNoOp;  // kNoOp: the item stands alone
};

/// An op whose items do not simply stand against those of one golden op at the same positions.
struct OpLinks {
  std::vector<ItemLink> links;
  uint32_t others = kNoOp;  // golden op whose items stand against those that `links` does not name
  /// Ops of one side whose items of one position are one item of the other's: of the target (this one first), which
  /// stand against `others`, or of the golden run.
  std::vector<uint32_t> joined = {};
  bool joins_targets = false;
};

/// A plain result that prints as JSON; comparing follows it.
struct MatchPlan {
  MatchOptions options;
  std::string how = "exact";                    // "exact", "fuzzy", "cell mapping", ...
  BigArray<uint32_t> golden_of;                 // for each target op the golden op's index, or kNoOp
  BigArray<uint32_t> golden_only;               // golden ops without a partner, in their order
  std::unordered_map<uint32_t, OpLinks> links;  // by target op; golden_of is then one of its golden ops
  std::optional<FusedPlan> fused;               // --consistent_check; golden_of is then the first of each op's group
  bool cross = false;                           // of two frameworks, or of two implementations in one
  bool implementations = false;                 // the latter: dimensions may have another order
  /// What the rules of a layer mapping came to: of no module of the target, of modules without such a child in the
  /// golden run, or of some pair.
  enum class RuleUse : uint8_t { kNoTarget, kNoGolden, kUsed };
  RuleUse rules = RuleUse::kUsed;
  std::vector<size_t> unknown_classes = {};  // rules of a layer mapping whose class the target does not have
  std::vector<Message> warnings;             // of the mapping: what it names and the dumps do not have
  size_t matched = 0;
  size_t skipped = 0;  // target ops that are not part of the comparison
  /// Ops that a recording that was cut may have had, on the other side: of the target from `seen_target` on, and golden
  /// ops, which are then not in golden_only.
  size_t seen_target = SIZE_MAX, target_unseen = 0, golden_unseen = 0;
  std::vector<bool> left_out = {};  // target ops that have no partner for a known reason; empty: none
  size_t target_only() const { return golden_of.size() - matched - skipped - target_unseen; }
  bool NotSeen(size_t op) const {
    return golden_of[op] == kNoOp && !Skips(op) && (op >= seen_target || (!left_out.empty() && left_out[op]));
  }
  /// Other ops of the target that the golden run computes as one with `op`.
  std::vector<uint32_t> JoinedWith(size_t op) const;
  bool Skips(size_t op) const { return fused && fused->skipped[op]; }
};

/// Names are in dump order. Normally ops match by name, where the call number of backward ops is counted anew per op in
/// order of appearance: a recomputed forward shifts the numbers of one run only. Cost is linear in the number of ops;
/// fuzzy matching is linear too, with a factor for how much the runs differ.
MatchPlan MatchOps(const NameSequence& target, const NameSequence& golden, const MatchOptions& options);

/// Sets `matched` and `golden_only` from the rest of the plan.
void CountMatches(size_t golden_ops, MatchPlan* plan);

/// {"how": "exact", "fuzzy": .., "matched": .., "pairs": [["a", "b"], ...], "target_only": [...], "golden_only":
/// [...]}, and where items stand against those of other positions or several ops, "items": [[target item, golden item
/// or null], ...].
void WriteMatchPlan(JsonWriter* json, const MatchPlan& plan, const NameSequence& target, const NameSequence& golden);

/// Longest common subsequence of two id sequences, as pairs of indices in order. Exact while the sequences differ in
/// fewer than `max_edits` places in a row; beyond that it keeps the best path so far and goes on behind it, so cost and
/// memory stay bounded.
struct IndexPair {
  uint32_t first = 0, second = 0;
};
BigArray<IndexPair> AlignSequences(const BigArray<uint32_t>& a, const BigArray<uint32_t>& b, uint32_t max_edits = 1000);

}  // namespace msprobe
