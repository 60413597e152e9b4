// The columns of the comparison tables.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compare/op_diff.h"

namespace msprobe {

inline constexpr std::string_view kNotAvailableCell = "N/A";

/// `custom` are the names of the user's own metrics, in tensor mode.
std::vector<std::string_view> TableColumns(CompareMode mode, bool with_stack,
                                           const std::vector<std::string>& custom = {}, bool ruler = false);

/// A number of the ruler: three digits, "inf" beyond all numbers, "N/A" for rows that it does not measure.
std::string RulerText(double value, const RulerCell& cell);

/// The two files of a row, as Python writes a list.
std::string DataNameCell(std::string_view target, std::string_view golden);

}  // namespace msprobe
