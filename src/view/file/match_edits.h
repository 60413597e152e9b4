// Matches made and cancelled by hand, and the texts they travel in: the file beside a graph database, the configuration
// file of the earlier tool, and the body of a request.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace msprobe::view {

/// Of the graph of one rank at one step.
struct MatchEdits {
  std::map<std::string, std::string, std::less<>> made;  ///< NPU node -> Bench node
  std::set<std::string, std::less<>> cancelled;          ///< NPU nodes that lose the partner they have in the file
  bool empty() const { return made.empty() && cancelled.empty(); }
  bool operator==(const MatchEdits&) const = default;
};

/// By step and rank.
using FileEdits = std::map<std::pair<int64_t, int64_t>, MatchEdits>;

inline constexpr uint64_t kMaxMatchFileBytes = 32 << 20;

/// {"msprobe_matches": 1, "graphs": [{"step": 0, "rank": 0, "made": {"A": "B"}, "cancelled": ["C"]}]}. `shown` names
/// the file in errors.
StatusOr<FileEdits> ParseFileEdits(std::string_view json, std::string_view shown);
std::string FileEditsJson(const FileEdits& edits);

/// {"A": "B", ...} in the order of the file; files of the earlier tool also have each pair the other way round.
StatusOr<std::vector<std::pair<std::string, std::string>>> ParseMatchConfig(std::string_view json,
                                                                            std::string_view shown);
/// As the earlier tool writes it: four spaces, UTF-8.
std::string MatchConfigJson(const MatchEdits& edits);

/// What a request asks to be changed. Which of the texts are needed depends on the request.
struct MatchRequest {
  std::string target, golden, config;
  std::string revision;  ///< of the matches that the user saw; "" for whatever there is
  bool descendants = false;
};
/// kUsage for what is no such request.
StatusOr<MatchRequest> ParseMatchRequest(std::string_view json);

}  // namespace msprobe::view
