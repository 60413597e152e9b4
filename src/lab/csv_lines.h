// Rows of csv files as mindstudio-probe writes them: a byte order mark, lines that end in CR LF.
#pragma once

#include <span>
#include <string>

namespace msprobe {

/// In front of the first line.
inline constexpr char kByteOrderMark[] = "\xEF\xBB\xBF";
void AppendCsvLine(std::span<const std::string> cells, std::string* out);

}  // namespace msprobe
