// The answers as the page receives them; docs/page_api.md describes each.
#pragma once

#include <string>

#include "view/query/answers.h"
#include "view/query/match_answers.h"

namespace msprobe::view {

std::string ToJson(const FileList& list);
std::string ToJson(const VisSettings& config);
std::string ToJson(const GraphCounts& summary);
/// `rows`: a list for each child.
std::string ToJson(const ChildList& list, bool rows = false);
std::string PathToJson(const std::vector<std::string>& path);
std::string ToJson(const NodeDetail& detail);
std::string ToJson(const SearchHits& hits);
std::string ToJson(const SeekHit& hit);
std::string ToJson(const std::vector<OverviewCell>& cells);
std::string ToJson(const Findings& findings);
std::string ToJson(const std::vector<LayerSummary>& layers);
std::string ToJson(const LinkDetail& links);
std::string ToJson(const MatchState& state);
std::string ToJson(const MatchChange& change);  ///< of one that was not refused
std::string ToJson(const PartnerSuggestions& suggestions);
std::string ToJson(const NodeHistory& history);
std::string ErrorJson(std::string_view text);
/// With a word for programs.
std::string ErrorJson(std::string_view text, std::string_view reason);

}  // namespace msprobe::view
