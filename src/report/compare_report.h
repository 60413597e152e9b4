// What a comparison gives, for all that tells of it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/message.h"
#include "compare/pair/compare.h"
#include "diagnose/divergence.h"
#include "diagnose/story/story.h"
#include "report/structure_compare.h"

namespace msprobe {

/// What `--rows differing` says of one rank.
struct RankOutcome {
  uint64_t differing = 0, inherited = 0;  // rows in the table of all ranks, and rows that only inherit
  std::string equal_to;                   // the label of the rank whose files have the same bytes; ""
  std::string first;                      // what differs first, in English; ""
};

/// The result of one pair of dumps.
struct PairReport {
  FilePair files;
  CompareMode mode = CompareMode::kStatistics;
  bool fuzzy = false;
  std::string matching = "exact";  // how ops were matched: MatchPlan::how
  std::vector<std::string> paths;  // result files
  CompareCounts counts;
  uint64_t golden_only_ops = 0;
  uint64_t target_unseen = 0, golden_unseen = 0;  // ops that the other side, which is not whole, may have had
  uint64_t unread = 0;                            // rows whose tensors could not be read
  std::vector<RecordingGap> gaps;
  std::vector<std::string> target_only, golden_only;  // the first few names
  Differences differences;
  std::optional<RankOutcome> rank;  // with `--rows differing`
  std::vector<Message> warnings;
  std::string page;                           // data of the HTML report, when one was asked for
  std::string advisor;                        // path of the advisor's file; ""
  std::vector<std::string> mappings;          // files that -lm writes
  std::vector<std::string> unmatched;         // the table of ops without a partner, when it was asked for
  std::optional<StructureSummary> structure;  // of a comparison of models; mode and differences say nothing then
};

/// The script that calls the first op that differs again; or why it cannot be called.
struct ReproReport {
  std::string script;    // path; "" where there is none
  bool made_up = false;  // the dumps hold no values: the inputs are drawn at random
  Message why_not;
};

struct CompareReport {
  std::vector<PairReport> pairs;
  std::vector<std::string> target_only_dirs, golden_only_dirs;  // ranks and steps without a partner
  std::vector<std::pair<std::string, Status>> failures;         // pairs that could not be compared, by label
  std::string html;                                             // path of the HTML report; ""
  Divergence divergence;                                        // of the first step that differs
  Story story;                                                  // the answer of it all
  bool told = false;                                            // it was told before the tables were written
  std::vector<std::string> differing;                           // the table of `--rows differing`
  std::string ranks;                                            // and its file with a line for each rank; ""
  std::vector<std::string> diff_analyze;                        // files of -da
  std::optional<ReproReport> repro;                             // of --repro, where something differs
  std::string divergence_path;                                  // first_divergence.json
  bool replayed = false;                                        // --replay was asked for
  std::vector<ReplayedOp> replays;                              // by pair and op
  std::string mapping_path;                                     // of the suggested layer mapping; ""
  SuggestedMapping suggested;                                   // when there is one
};

}  // namespace msprobe
