// What is asked and answered about matches made by hand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "view/matching/partner_search.h"
#include "view/query/answers.h"

namespace msprobe::view {

/// A change of the matches of a graph; what each needs is in MatchRequest.
enum class MatchAction : uint8_t {
  kAdd,     ///< npu, bench, descendants: nodes below them by name as well
  kRemove,  ///< npu, descendants
  kApply,   ///< config: the pairs of a configuration file
  kSave,    ///< writes the pairs made by hand to a configuration file
  kUndo,    ///< takes the last change back
  kRedo     ///< makes it again
};

/// Why a pair is not matched, or a match not cancelled.
enum class MatchRefusal : uint8_t {
  kNone,
  kSingle,
  kTensor,
  kTaken,
  kTypes,
  kAbsent,
  kNotMatched,
  kStale,
  kNothing,
  kNoChange
};
std::string_view RefusalName(MatchRefusal refusal);  // "taken"

struct MatchState {
  MatchRefusal refusal = MatchRefusal::kNone;  ///< why nothing can be matched in this file
  std::string revision, problem;
  std::vector<std::pair<std::string, std::string>> made;
  std::vector<std::string> cancelled, configs;
  size_t undo = 0, redo = 0;  ///< changes that can be taken back, and made again
};

struct SkippedMatch {
  std::string target, golden;
  MatchRefusal refusal = MatchRefusal::kNone;
};

struct MatchChange {
  MatchRefusal refusal = MatchRefusal::kNone;  ///< of the change as a whole; nothing was changed then
  std::string text;                            ///< one line that says so
  uint64_t changed = 0;                        ///< pairs made or cancelled
  uint64_t skipped_total = 0;
  std::vector<SkippedMatch> skipped;  ///< of a configuration file, at most kMostSkipped
  std::string config;                 ///< name of the file written
  static constexpr size_t kMostSkipped = 100;
};

/// What could be matched with a node that has no partner, best first.
struct PartnerSuggestions {
  struct One {
    NodeSummary node;
    PartnerGuess guess;
  };
  std::vector<One> list;
  static constexpr size_t kMost = 3;
};

}  // namespace msprobe::view
