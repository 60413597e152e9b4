// Cells of trend maps: how a file holds them, and which rows of a map are odd.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "view/file/sqlite_db.h"

namespace msprobe::view {

/// There is no value. NaN is one that was recorded, and so are the infinities.
inline constexpr double kNoTrendCell = std::numeric_limits<double>::max();

/// Which of the columns of statistics; 0 for one that is not among them.
size_t StatColumn(const std::vector<std::string>& columns, std::string_view stat);

/// The value in column `at` of a row, whose next one has the bits of what is absent: a file cannot hold NaN, which is
/// NULL there, and holds infinities as 1e9 + 1. kNoTrendCell where there is none.
double TrendCell(const SqliteStatement& row, int at, size_t stat);

/// What a value is compared with: the others of its row, or those of its column.
enum class OutlierLine : uint8_t { kRow, kColumn };

/// The rows of a map, the one first that has a value farthest from the median of its line, in standard deviations as
/// the median deviation gives them; web/src/api/outliers.ts does the same. Before them rows of which some values are
/// finite and some are not.
std::vector<size_t> OutlierOrder(const std::vector<double>& values, size_t columns, OutlierLine line);

}  // namespace msprobe::view
