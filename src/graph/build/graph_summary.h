// What a graph_visualize made and found, in numbers.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "compare/first_difference/first_difference.h"
#include "diagnose/story/story.h"
#include "graph/comm/findings.h"

namespace msprobe {

/// The first node, in the order of collection, that is an error.
struct FirstError {
  int step = 0, rank = 0;
  uint32_t order = 0;
  std::string node;
};

/// What made the first difference, as `compare` finds it.
struct RankDifference {
  int step = 0, rank = 0;
  FirstDifference difference;
};

/// A rank that could not be shown, or only in part.
struct DamagedRank {
  int step = 0, rank = 0;
  bool left_out = false;
  Status why = OkStatus();
};

struct GraphSummary {
  std::string file;
  uint64_t bytes = 0;
  std::string task;  // "summary", "md5", "structure", "all"; empty for a build
  size_t graphs = 0;
  size_t target_nodes = 0, golden_nodes = 0;
  std::array<size_t, 3> levels{};  // pass, warning, error
  size_t no_data = 0;              // matched, but nothing to compare
  size_t unmatched = 0, golden_unmatched = 0;
  std::array<size_t, 4> overflows{};  // of the target: -, medium, high, critical
  size_t links = 0;
  bool merged = false;
  std::vector<int> first_error_suspects;  // of merged ranks: those whose parts stand out in the first error
  std::optional<FirstError> first_error;
  std::optional<RankDifference> first_difference;
  std::optional<Story> story;  // of a comparison of values, and of a search for NaN and infinities
  std::vector<DamagedRank> damaged;
  std::vector<RecordingGap> gaps;  // recordings that are not whole
  uint64_t unread = 0;             // rows whose tensors could not be read
  std::string first_unread;        // and what is wrong with the first
  std::vector<GraphFinding> findings;
};

Message GraphSummaryText(const GraphSummary& summary, bool compare, bool overflow_check);
/// kBadInput when ranks are missing from the result, or parts of them.
Status GraphSummaryStatus(const GraphSummary& summary);
/// `structures` is a JSON list, or empty.
std::string GraphSummaryJson(const GraphSummary& summary, bool compare, bool overflow_check,
                             std::string_view structures = {});

}  // namespace msprobe
