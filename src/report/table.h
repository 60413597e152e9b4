// Where the rows of a comparison go: csv files or a workbook.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compare/compare.h"
#include "diagnose/replay_result.h"

namespace msprobe {

/// Takes blocks in order; nothing appears under a final name before Commit().
class ResultTable {
 public:
  virtual ~ResultTable() = default;
  virtual const RowFormat& format() const = 0;
  virtual Status Take(RowBlock&& block) = 0;
  virtual Status Commit() = 0;
  /// The files, once committed.
  virtual const std::vector<std::string>& paths() const = 0;
};

struct TableSpec {
  CompareMode mode = CompareMode::kStatistics;
  const StackFile* stacks = nullptr;                 // adds the stack column
  std::string path;                                  // ends in .csv or .xlsx
  bool highlight = false;                            // of workbooks: rows in colour, as -hl of older releases
  std::vector<std::string> custom;                   // columns of the user's own metrics
  bool ruler = false;                                // adds what the ruler says
  bool older = false;                                // verdicts as release 8.x gives them
  const std::vector<ReplayedOp>* replays = nullptr;  // adds what the replays say
  std::string target_dump;                           // of the replays: those of this dump
  std::vector<std::string> columns;  // of a table of texts, which AppendTextRow fills; the above say nothing then
};

/// The titles of the columns.
std::vector<std::string_view> ColumnsOf(const TableSpec& spec);

/// A row of such a table. In a workbook the cells "error" and "warning" are coloured.
void AppendTextRow(const TableSpec& spec, const std::vector<std::string_view>& cells, RowBlock* block);

/// csv, quoted as Python's csv module does; a new file each `rows_per_file` rows ("_part_1", "_part_2", ...).
inline constexpr uint64_t kCsvRowsPerFile = 1'000'000;
StatusOr<std::unique_ptr<ResultTable>> CreateCsvTable(const TableSpec& spec, uint64_t rows_per_file = kCsvRowsPerFile);

/// The rows as in such a file, without a table around them.
std::unique_ptr<RowFormat> CreateCsvFormat(const TableSpec& spec);

/// A workbook; from `rows_per_sheet` rows on, sheets of equal length ("part_0", "part_1", ...). `total_rows` must be
/// known before, because a sheet is written once and in order.
inline constexpr uint64_t kXlsxRowsPerSheet = 1'048'500;
StatusOr<std::unique_ptr<ResultTable>> CreateXlsxTable(const TableSpec& spec, uint64_t total_rows,
                                                       uint64_t rows_per_sheet = kXlsxRowsPerSheet);

/// Cells on their way to a workbook.
void AppendTextCells(const std::vector<std::string_view>& cells, std::string* out);

/// Appends `text` as a csv field. Text that a spreadsheet would run as a formula gets an apostrophe in front of it.
void AppendCsvField(std::string* out, std::string_view text);

/// The list of frames as one cell, in Python's notation.
std::string StackCell(const std::vector<std::string>& frames);

}  // namespace msprobe
