#include "serve/api.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "serve/run_api.h"
#include "serve/trend_api.h"
#include "view/query/tensor_view.h"
#include "view/query/view_json.h"

namespace msprobe::serve {
namespace {

using view::GraphAddress;
using view::Side;
using view::Viewer;

constexpr int64_t kMaxHits = 5000;

StatusOr<GraphAddress> Key(const RequestTarget& t) {
  GraphAddress key;
  key.file = t.Get("file");
  MSP_ASSIGN_OR_RETURN(key.step, t.Int("step"));
  MSP_ASSIGN_OR_RETURN(key.rank, t.Int("rank"));
  return key;
}

StatusOr<Side> SideOf(const RequestTarget& t) {
  const std::string_view side = t.Get("side");
  if (side.empty() || side == "NPU") return Side::kTarget;
  if (side == "Bench") return Side::kGolden;
  return UsageError("side is neither NPU nor Bench: give one of them");
}

StatusOr<uint64_t> Count(const RequestTarget& t, std::string_view name, int64_t fallback) {
  MSP_ASSIGN_OR_RETURN(const int64_t value, t.Int(name, &fallback));
  if (value < 0) return UsageError(fmt::format("{} is negative: give 0 or more", name));
  return static_cast<uint64_t>(value);
}

StatusOr<std::string> Files(Viewer* viewer, const RequestTarget&) {
  MSP_ASSIGN_OR_RETURN(const auto answer, viewer->Files());
  return view::ToJson(answer);
}

StatusOr<std::string> Config(Viewer* viewer, const RequestTarget& t) {
  MSP_ASSIGN_OR_RETURN(const auto answer, viewer->Config(t.Get("file")));
  return view::ToJson(answer);
}

StatusOr<std::string> Summary(Viewer* viewer, const RequestTarget& t) {
  MSP_ASSIGN_OR_RETURN(const GraphAddress key, Key(t));
  MSP_ASSIGN_OR_RETURN(const auto answer, viewer->Summary(key));
  return view::ToJson(answer);
}

StatusOr<std::string> Children(Viewer* viewer, const RequestTarget& t) {
  MSP_ASSIGN_OR_RETURN(const GraphAddress key, Key(t));
  MSP_ASSIGN_OR_RETURN(const Side side, SideOf(t));
  MSP_ASSIGN_OR_RETURN(const uint64_t offset, Count(t, "offset", 0));
  MSP_ASSIGN_OR_RETURN(const uint64_t limit, Count(t, "limit", std::numeric_limits<int64_t>::max()));
  MSP_ASSIGN_OR_RETURN(const auto answer, viewer->Children(key, side, t.Get("name"), offset, limit));
  return view::ToJson(answer, t.Get("rows") == "1");
}

StatusOr<std::string> Path(Viewer* viewer, const RequestTarget& t) {
  MSP_ASSIGN_OR_RETURN(const GraphAddress key, Key(t));
  MSP_ASSIGN_OR_RETURN(const Side side, SideOf(t));
  if (!t.Has("name")) return UsageError("name is missing: give name=NODE");
  MSP_ASSIGN_OR_RETURN(const auto answer, viewer->Path(key, side, t.Get("name")));
  return view::PathToJson(answer);
}

StatusOr<std::string> Node(Viewer* viewer, const RequestTarget& t) {
  MSP_ASSIGN_OR_RETURN(const GraphAddress key, Key(t));
  MSP_ASSIGN_OR_RETURN(const Side side, SideOf(t));
  if (!t.Has("name")) return UsageError("name is missing: give name=NODE");
  MSP_ASSIGN_OR_RETURN(const auto answer, viewer->Node(key, side, t.Get("name")));
  return view::ToJson(answer);
}

StatusOr<view::SearchQuery> Query(const RequestTarget& t) {
  view::SearchQuery query;
  query.text = t.Get("q");
  const auto filter = view::ParseNodeFilter(t.Get("level"));
  if (!filter) {
    return UsageError(
        "level is not known: give pass, warning, error, unmatched, none, medium, high, critical, overflow, bug, "
        "suspicious, inherited, round-off, rewritten, bit-equal or unjudged, or several with commas between them");
  }
  query.filter = *filter;
  query.leaves_only = t.Get("leaf") == "1";
  const auto sort = view::ParseHitSort(t.Get("sort"));
  if (!sort) return UsageError("sort is not known: give execution, error or module");
  query.sort = *sort;
  return query;
}

StatusOr<std::string> Search(Viewer* viewer, const RequestTarget& t) {
  MSP_ASSIGN_OR_RETURN(const GraphAddress key, Key(t));
  MSP_ASSIGN_OR_RETURN(const Side side, SideOf(t));
  MSP_ASSIGN_OR_RETURN(view::SearchQuery query, Query(t));
  MSP_ASSIGN_OR_RETURN(query.offset, Count(t, "offset", 0));
  MSP_ASSIGN_OR_RETURN(query.limit, Count(t, "limit", 200));
  query.limit = std::min<uint64_t>(query.limit, kMaxHits);
  MSP_ASSIGN_OR_RETURN(const auto answer, viewer->Search(key, side, query));
  return view::ToJson(answer);
}

StatusOr<std::string> Seek(Viewer* viewer, const RequestTarget& t) {
  MSP_ASSIGN_OR_RETURN(const GraphAddress key, Key(t));
  MSP_ASSIGN_OR_RETURN(const Side side, SideOf(t));
  MSP_ASSIGN_OR_RETURN(const view::SearchQuery query, Query(t));
  const std::string_view direction = t.Get("direction");
  if (direction != "" && direction != "1" && direction != "-1") {
    return UsageError("direction is neither 1 nor -1: give one of them");
  }
  MSP_ASSIGN_OR_RETURN(const auto answer, viewer->Seek(key, side, query, t.Get("from"), direction != "-1"));
  return view::ToJson(answer);
}

StatusOr<std::string> Links(Viewer* viewer, const RequestTarget& t) {
  MSP_ASSIGN_OR_RETURN(const GraphAddress key, Key(t));
  MSP_ASSIGN_OR_RETURN(const Side side, SideOf(t));
  if (!t.Has("name")) return UsageError("name is missing: give name=NODE");
  MSP_ASSIGN_OR_RETURN(const auto answer, viewer->Links(key, side, t.Get("name")));
  return view::ToJson(answer);
}

StatusOr<std::string> History(Viewer* viewer, const RequestTarget& t) {
  MSP_ASSIGN_OR_RETURN(const Side side, SideOf(t));
  if (!t.Has("name")) return UsageError("name is missing: give name=NODE");
  MSP_ASSIGN_OR_RETURN(const auto answer, viewer->History(t.Get("file"), side, t.Get("name")));
  return view::ToJson(answer);
}

StatusOr<std::string> Suggestions(Viewer* viewer, const RequestTarget& t) {
  MSP_ASSIGN_OR_RETURN(const GraphAddress key, Key(t));
  MSP_ASSIGN_OR_RETURN(const Side side, SideOf(t));
  if (!t.Has("name")) return UsageError("name is missing: give name=NODE");
  MSP_ASSIGN_OR_RETURN(const auto answer, viewer->SuggestPartners(key, side, t.Get("name")));
  return view::ToJson(answer);
}

StatusOr<std::string> Matrix(Viewer* viewer, const RequestTarget& t) {
  MSP_ASSIGN_OR_RETURN(const auto answer, viewer->Matrix(t.Get("file")));
  return view::ToJson(answer);
}

StatusOr<std::string> Verdict(Viewer* viewer, const RequestTarget& t) { return viewer->Verdict(t.Get("file")); }

StatusOr<std::string> Findings(Viewer* viewer, const RequestTarget& t) {
  MSP_ASSIGN_OR_RETURN(const GraphAddress key, Key(t));
  MSP_ASSIGN_OR_RETURN(const auto answer, viewer->FindingsOf(key));
  return view::ToJson(answer);
}

StatusOr<std::string> Layers(Viewer* viewer, const RequestTarget& t) {
  MSP_ASSIGN_OR_RETURN(const GraphAddress key, Key(t));
  MSP_ASSIGN_OR_RETURN(const auto answer, viewer->Layers(key));
  return view::ToJson(answer);
}

StatusOr<std::string> Activations(Viewer* viewer, const RequestTarget& t) {
  MSP_ASSIGN_OR_RETURN(const GraphAddress key, Key(t));
  return viewer->ActivationsOf(key);
}

StatusOr<std::string> Matches(Viewer* viewer, const RequestTarget& t) {
  MSP_ASSIGN_OR_RETURN(const GraphAddress key, Key(t));
  MSP_ASSIGN_OR_RETURN(const auto answer, viewer->Matches(key));
  return view::ToJson(answer);
}

StatusOr<std::string> Tensor(Viewer* viewer, const RequestTarget& t) {
  MSP_ASSIGN_OR_RETURN(const GraphAddress key, Key(t));
  MSP_ASSIGN_OR_RETURN(const Side side, SideOf(t));
  if (!t.Has("name") || !t.Has("item")) return UsageError("name or item is missing: give name=NODE and item=ITEM");
  view::TensorQuery query;
  query.node = t.Get("name");
  query.item = t.Get("item");
  query.partner_item = t.Get("partner_item");
  MSP_ASSIGN_OR_RETURN(const uint64_t slice, Count(t, "slice", 0));
  query.slice = static_cast<int64_t>(slice);
  MSP_ASSIGN_OR_RETURN(const auto answer, viewer->Tensor(key, side, query));
  return view::ToJson(answer);
}

using Route = StatusOr<std::string> (*)(Viewer*, const RequestTarget&);
constexpr std::array<std::pair<std::string_view, Route>, 25> kRoutes{
    {{"/api/files", Files},          {"/api/config", Config},    {"/api/summary", Summary},
     {"/api/children", Children},    {"/api/path", Path},        {"/api/node", Node},
     {"/api/search", Search},        {"/api/seek", Seek},        {"/api/links", Links},
     {"/api/history", History},      {"/api/matrix", Matrix},    {"/api/verdict", Verdict},
     {"/api/findings", Findings},    {"/api/layers", Layers},    {"/api/activations", Activations},
     {"/api/run", RunOverview},      {"/api/run/rows", RunRows}, {"/api/run/tile", RunTile},
     {"/api/run/events", RunEvents}, {"/api/trend", TrendInfo},  {"/api/trend/grid", TrendGrid},
     {"/api/trend/line", TrendLine}, {"/api/matches", Matches},  {"/api/suggestions", Suggestions},
     {"/api/tensor", Tensor}}};

constexpr std::array<std::pair<std::string_view, view::MatchAction>, 6> kChanges{
    {{"/api/match/add", view::MatchAction::kAdd},
     {"/api/match/remove", view::MatchAction::kRemove},
     {"/api/match/apply", view::MatchAction::kApply},
     {"/api/match/save", view::MatchAction::kSave},
     {"/api/match/undo", view::MatchAction::kUndo},
     {"/api/match/redo", view::MatchAction::kRedo}}};

StatusOr<view::MatchChange> Change(Viewer* viewer, view::MatchAction action, const RequestTarget& t,
                                   std::string_view body) {
  MSP_ASSIGN_OR_RETURN(const GraphAddress key, Key(t));
  MSP_ASSIGN_OR_RETURN(const view::MatchRequest request, view::ParseMatchRequest(body));
  return viewer->ChangeMatches(key, action, request);
}

int HttpStatus(Code code) {
  switch (code) {
    case Code::kUsage: return 400;
    case Code::kBadInput: return 404;
    case Code::kInterrupted: return 503;
    default: return 500;
  }
}

}  // namespace

ApiReply ErrorReply(int status, std::string_view text) { return {status, view::ErrorJson(text)}; }

std::vector<ServedRoute> ApiRoutes() {
  std::vector<ServedRoute> routes;
  for (const auto& [path, route] : kRoutes) routes.push_back({"GET", path});
  for (const auto& [path, action] : kChanges) routes.push_back({"POST", path});
  return routes;
}

ApiReply AnswerApi(Viewer* viewer, const RequestTarget& target) {
  for (const auto& [path, route] : kRoutes) {
    if (target.path != path) continue;
    auto answer = route(viewer, target);
    if (answer.ok()) return {200, *std::move(answer)};
    return ErrorReply(HttpStatus(answer.status().code()), answer.status().message());
  }
  return ErrorReply(404, "there is no such query: see docs/page_api.md");
}

bool IsChange(std::string_view path) {
  return std::any_of(kChanges.begin(), kChanges.end(), [&](const auto& change) { return change.first == path; });
}

ApiReply AnswerChange(Viewer* viewer, const RequestTarget& target, std::string_view body) {
  for (const auto& [path, action] : kChanges) {
    if (target.path != path) continue;
    auto change = Change(viewer, action, target, body);
    if (!change.ok()) return ErrorReply(HttpStatus(change.status().code()), change.status().message());
    if (change->refusal != view::MatchRefusal::kNone)
      return {409, view::ErrorJson(change->text, view::RefusalName(change->refusal))};
    return {200, view::ToJson(*change)};
  }
  return ErrorReply(404, "there is no such query: see docs/page_api.md");
}

}  // namespace msprobe::serve
