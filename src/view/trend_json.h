// The answers about trends as the page receives them; docs/page_api.md describes each.
#pragma once

#include <string>
#include <vector>

#include "view/trend_file.h"

namespace msprobe::view {

std::string ToJson(const TrendInfo& info);
std::string ToJson(const TrendGrid& grid);
std::string ToJson(const std::vector<TrendPoint>& line);

}  // namespace msprobe::view
