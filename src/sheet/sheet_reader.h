// The rows of a comparison result, csv or xlsx: ours, the old tool's, and what a spreadsheet program made of them. A
// row at a time, in bounded memory; the input is hostile.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace msprobe {

struct SheetCell {
  enum class Kind : uint8_t { kEmpty, kText, kNumber, kBool };
  Kind kind = Kind::kEmpty;
  std::string text;  // as it stands in the file
};

/// One row. The cells are reused for the next one. The first row of each sheet has `first` set.
using TakeRow = std::function<Status(const std::vector<SheetCell>& cells, bool first)>;

inline constexpr size_t kMaxSheetColumns = 1'000;      // results have about 30
inline constexpr size_t kMaxSheetCell = 4 << 20;       // bytes; stacks are long
inline constexpr uint64_t kMaxSheetRows = 50'000'000;  // of a file

/// All sheets in their order. Refuses what is not a workbook, document types and entities, members larger than
/// `kMaxSheetBytes` or packed more tightly than any table is, and whatever exceeds the limits above.
inline constexpr uint64_t kMaxSheetBytes = uint64_t{8} << 30;
Status ReadXlsx(const std::string& path, const TakeRow& take);
/// The same of a file in memory; `path` is for error texts.
Status ReadXlsxBytes(std::string_view file, const std::string& path, const TakeRow& take);

/// Comma separated, quotes doubled within quotes, as Python and spreadsheets write.
Status ReadCsv(const std::string& path, const TakeRow& take);
/// Of a file that may have been cut while it was written: a last row without its end, and rows with fewer cells than
/// the first, are left out and counted.
Status ReadCutCsv(const std::string& path, const TakeRow& take, uint64_t* cut);
Status ReadCsvText(std::string_view text, const std::string& path, const TakeRow& take);

}  // namespace msprobe
