// Comparison results of others, as workbooks and as csv: rows stay within their bounds, refusals are one line.
#include <string_view>

#include "fuzz_file.h"
#include "sheet/sheet_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace msprobe;
  const std::string_view file(reinterpret_cast<const char*>(data), size);
  size_t rows = 0;
  const TakeRow take = [&](const std::vector<SheetCell>& cells, bool first) {
    fuzz::Check(first || rows > 0, "the first row of a file is the first of a sheet");
    fuzz::Check(!cells.empty() && cells.size() <= kMaxSheetColumns, "columns are bounded");
    for (const SheetCell& cell : cells) {
      fuzz::Check(cell.text.size() <= kMaxSheetCell + 1, "cells are bounded");
      fuzz::Check(cell.text.empty() == (cell.kind == SheetCell::Kind::kEmpty), "a cell without text is empty");
    }
    // Enough to look at: a small file can hold millions of rows.
    return ++rows > 100'000 ? BadInput("enough") : OkStatus();
  };
  for (const Status& status : {ReadXlsxBytes(file, "input", take), (rows = 0, ReadCsvText(file, "input", take))}) {
    if (status.ok()) continue;
    fuzz::CheckRefusal(status);
    fuzz::Check(status.message().find('\n') == std::string::npos, "a refusal is one line");
  }
  return 0;
}
