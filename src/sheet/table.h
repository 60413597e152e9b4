// Where rows of cells go: csv files or a workbook.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "sheet/cell.h"

namespace msprobe {

/// A cell of a workbook that waits for its turn: a text (kWord), a number, a bool or a shared text.
struct PackedCell {
  Cell::Kind kind = Cell::Kind::kWord;
  Cell::Color color = Cell::Color::kNone;
  uint32_t size = 0;  // of the text
  union {
    double number = 0;
    uint64_t at;  // of the text in the block's bytes; the id of a shared text
  };
};

/// Formatted rows.
struct RowBlock {
  std::string bytes;               // csv; the texts of `cells`
  std::vector<PackedCell> cells;   // of a workbook
  std::vector<uint64_t> row_ends;  // behind each row: in `cells` of a workbook, in `bytes` otherwise
};

/// Takes blocks in order; nothing appears under a final name before Commit().
class ResultTable {
 public:
  virtual ~ResultTable() = default;
  /// Formats a row for Take(); called by several threads at once. `color` is that of cells without one.
  virtual void AppendRow(const std::vector<Cell>& cells, Cell::Color color, RowBlock* block) const = 0;
  virtual Status Take(RowBlock&& block) = 0;
  virtual Status Commit() = 0;
  /// The files, once committed.
  virtual const std::vector<std::string>& paths() const = 0;
};

/// Texts that many cells repeat, as stacks.
using SharedTexts = std::shared_ptr<const std::vector<std::string>>;

struct TableSpec {
  std::string path;  // ends in .csv or .xlsx
  std::vector<std::string> columns;
  SharedTexts shared;            // of cells of kShared
  std::string sheet = "Sheet1";  // of a workbook
};

/// csv, quoted as Python's csv module does; a new file each `rows_per_file` rows ("_part_1", "_part_2", ...).
inline constexpr uint64_t kCsvRowsPerFile = 1'000'000;
StatusOr<std::unique_ptr<ResultTable>> CreateCsvTable(const TableSpec& spec, uint64_t rows_per_file = kCsvRowsPerFile);

/// A workbook; from `rows_per_sheet` rows on, sheets of equal length ("part_0", "part_1", ...). `total_rows` must be
/// known before, because a sheet is written once and in order.
inline constexpr uint64_t kXlsxRowsPerSheet = 1'048'500;
StatusOr<std::unique_ptr<ResultTable>> CreateXlsxTable(const TableSpec& spec, uint64_t total_rows,
                                                       uint64_t rows_per_sheet = kXlsxRowsPerSheet);

bool IsWorkbook(std::string_view path);
/// Either, as the path ends.
StatusOr<std::unique_ptr<ResultTable>> CreateTable(const TableSpec& spec, uint64_t total_rows);

/// A row of texts.
void AppendTextRow(const ResultTable& table, const std::vector<std::string_view>& texts, RowBlock* block);

/// Appends `text` as a csv field. Text that a spreadsheet would run as a formula gets an apostrophe in front of it.
void AppendCsvField(std::string* out, std::string_view text);

/// The same of a cell, without the quotes: what a reader of the csv file sees.
void AppendCsvText(const Cell& cell, std::string* out);

/// The list of frames as one cell, in Python's notation.
std::string StackCell(const std::vector<std::string>& frames);

}  // namespace msprobe
