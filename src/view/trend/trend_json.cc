#include "view/trend/trend_json.h"

namespace msprobe::view {

std::string ToJson(const TrendInfo& info) {
  JsonWriter json(kJsonPage);
  json.BeginObject();
  json.ArrayMember("metrics", info.metrics, [&](const TrendMetric& metric) {
    json.BeginObject();
    json.Member("name", metric.name);
    json.Member("stats", metric.stats);
    json.ArrayMember("tags", metric.tags, [&](const auto& tag) {
      json.BeginObject();
      json.Member("name", tag.first);
      json.Member("category", tag.second);
      json.EndObject();
    });
    json.EndObject();
  });
  json.Member("ranks", info.ranks);
  json.Member("steps", info.steps);
  json.EndObject();
  return json.Take();
}

void WriteCell(JsonWriter* json, double value) { value == kNoTrendCell ? json->Null() : json->Number(value); }

std::string ToJson(const TrendGrid& grid) {
  JsonWriter json(kTrendStyle);
  json.BeginObject();
  json.Member("total", grid.total);
  json.Member("columns", grid.columns);
  json.ArrayMember("rows", grid.rows, [&](const TrendTargetName& target) {
    json.BeginObject();
    json.Member("id", target.id);
    json.Member("name", target.name);
    json.Member("vpp_stage", target.vpp_stage);
    json.Member("micro_step", target.micro_step);
    json.EndObject();
  });
  json.Member("ranks", grid.ranks);
  json.ArrayMember("values", grid.values, [&](double value) { WriteCell(&json, value); });
  json.EndObject();
  return json.Take();
}

std::string ToJson(const std::vector<TrendPoint>& line) {
  JsonWriter json(kTrendStyle);
  json.BeginObject();
  json.ArrayMember("points", line, [&](const TrendPoint& point) {
    json.BeginArray();
    json.Value(point.at);
    WriteCell(&json, point.value);
    json.EndArray();
  });
  json.EndObject();
  return json.Take();
}

}  // namespace msprobe::view
