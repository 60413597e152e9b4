#include "view/trend_json.h"

#include <cmath>

#include "view/json_parts.h"

namespace msprobe::view {
namespace {

void Value(std::string& out, double value) {
  if (std::isfinite(value)) {
    AppendJsonNumber(out, value);
  } else {
    out += "null";
  }
}

void Ints(std::string& out, const std::vector<int64_t>& list) {
  Array(out, list, [&](int64_t v) { AppendInt(out, v); });
}

}  // namespace

std::string ToJson(const TrendInfo& info) {
  std::string out = "{\"metrics\":";
  Array(out, info.metrics, [&](const TrendMetric& metric) {
    out += "{\"name\":";
    Text(out, metric.name);
    Key(out, "stats");
    Texts(out, metric.stats);
    Key(out, "tags");
    Array(out, metric.tags, [&](const auto& tag) {
      out += "{\"name\":";
      Text(out, tag.first);
      Key(out, "category");
      Text(out, tag.second);
      out += '}';
    });
    out += '}';
  });
  Key(out, "ranks");
  Ints(out, info.ranks);
  Key(out, "steps");
  Ints(out, info.steps);
  return out + "}";
}

std::string ToJson(const TrendGrid& grid) {
  std::string out = "{\"total\":" + std::to_string(grid.total);
  Key(out, "columns");
  Ints(out, grid.columns);
  Key(out, "rows");
  Array(out, grid.rows, [&](const TrendTargetName& target) {
    out += "{\"id\":";
    AppendInt(out, target.id);
    Key(out, "name");
    Text(out, target.name);
    Key(out, "vpp_stage");
    AppendInt(out, target.vpp_stage);
    Key(out, "micro_step");
    AppendInt(out, target.micro_step);
    out += '}';
  });
  Key(out, "ranks");
  Ints(out, grid.ranks);
  Key(out, "values");
  Array(out, grid.values, [&](double value) { Value(out, value); });
  return out + "}";
}

std::string ToJson(const std::vector<TrendPoint>& line) {
  std::string out = "{\"points\":";
  Array(out, line, [&](const TrendPoint& point) {
    out += '[';
    AppendInt(out, point.at);
    out += ',';
    Value(out, point.value);
    out += ']';
  });
  return out + "}";
}

}  // namespace msprobe::view
