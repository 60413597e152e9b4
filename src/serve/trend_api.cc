#include "serve/trend_api.h"

#include <algorithm>
#include <cstdint>

#include "view/trend/trend_json.h"

namespace msprobe::serve {
namespace {

constexpr int64_t kMostRows = 2000;

StatusOr<uint64_t> NotNegative(const RequestTarget& t, const char* name, int64_t fallback) {
  MSP_ASSIGN_OR_RETURN(const int64_t value, t.Int(name, &fallback));
  if (value < 0) return UsageError(std::string(name) + " is negative: give 0 or more");
  return static_cast<uint64_t>(value);
}

// Tags hold dots and letters; a line break separates them.
std::vector<std::string> Tags(std::string_view text) {
  std::vector<std::string> tags;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    if (end > at) tags.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return tags;
}

}  // namespace

StatusOr<std::string> TrendInfo(view::Viewer* viewer, const RequestTarget& t) {
  MSP_ASSIGN_OR_RETURN(const auto file, viewer->Trend(t.Get("file")));
  return view::ToJson(file->info());
}

StatusOr<std::string> TrendGrid(view::Viewer* viewer, const RequestTarget& t) {
  view::TrendQuery query;
  query.metric = t.Get("metric");
  query.stat = t.Get("stat");
  const std::string_view dimension = t.Get("dimension");
  if (dimension == "rank") {
    query.dimension = view::TrendDimension::kRank;
  } else if (dimension == "target") {
    query.dimension = view::TrendDimension::kTarget;
  } else if (dimension != "step") {
    return UsageError("dimension is not known: give step, rank or target");
  }
  MSP_ASSIGN_OR_RETURN(query.value, t.Int("value"));
  query.tags = Tags(t.Get("tags"));
  query.text = t.Get("q");
  const std::string_view order = t.Get("order");
  if (order != "" && order != "outliers") return UsageError("order is not known: give outliers, or leave it out");
  query.outliers_first = order == "outliers";
  MSP_ASSIGN_OR_RETURN(query.offset, NotNegative(t, "offset", 0));
  MSP_ASSIGN_OR_RETURN(query.limit, NotNegative(t, "limit", 200));
  query.limit = std::min<uint64_t>(query.limit, kMostRows);
  MSP_ASSIGN_OR_RETURN(const auto file, viewer->Trend(t.Get("file")));
  MSP_ASSIGN_OR_RETURN(const auto grid, file->Grid(query));
  return view::ToJson(grid);
}

StatusOr<std::string> TrendLine(view::Viewer* viewer, const RequestTarget& t) {
  const int64_t zero = 0;
  view::TrendLineQuery query;
  query.metric = t.Get("metric");
  query.stat = t.Get("stat");
  query.name = t.Get("name");
  MSP_ASSIGN_OR_RETURN(query.vpp_stage, t.Int("vpp_stage", &zero));
  MSP_ASSIGN_OR_RETURN(query.micro_step, t.Int("micro_step", &zero));
  for (const auto& [name, place] : {std::pair("rank", &query.rank), std::pair("step", &query.step)}) {
    if (!t.Has(name)) continue;
    MSP_ASSIGN_OR_RETURN(*place, t.Int(name));
  }
  MSP_ASSIGN_OR_RETURN(const auto file, viewer->Trend(t.Get("file")));
  MSP_ASSIGN_OR_RETURN(const auto line, file->Line(query));
  return view::ToJson(line);
}

}  // namespace msprobe::serve
