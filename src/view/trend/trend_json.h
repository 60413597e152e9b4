// The answers about trends as the page receives them; docs/page_api.md describes each.
#pragma once

#include <string>
#include <vector>

#include "json/writer.h"
#include "view/trend/trend_file.h"

namespace msprobe::view {

std::string ToJson(const TrendInfo& info);
std::string ToJson(const TrendGrid& grid);
std::string ToJson(const std::vector<TrendPoint>& line);
/// null for kNoTrendCell, "nan", "inf" or "-inf" for what JSON does not have.
void WriteCell(JsonWriter* json, double value);
/// What cells are written with.
inline constexpr JsonStyle kTrendStyle{
    .comma = ",", .colon = ":", .ascii = false, .not_finite = JsonStyle::NotFinite::kText};

}  // namespace msprobe::view
