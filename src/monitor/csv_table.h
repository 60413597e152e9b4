// The csv files of a monitor, one a metric and range of steps, as mindstudio-probe writes them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace msprobe {

/// A value of a row. A missing one is "nan".
struct CsvCell {
  enum class Kind : uint8_t { kMissing, kReal, kInteger, kText };
  Kind kind = Kind::kMissing;
  double real = 0;
  int64_t integer = 0;
  std::string text;

  /// In place: a cell is set anew in each step.
  void SetMissing() { kind = Kind::kMissing; }
  void SetReal(double v) { kind = Kind::kReal, real = v; }
  void SetInteger(int64_t v) { kind = Kind::kInteger, integer = v; }
  void SetText(std::string v) { kind = Kind::kText, text = std::move(v); }

  static CsvCell Real(double v) { return {Kind::kReal, v, 0, {}}; }
  static CsvCell Integer(int64_t v) { return {Kind::kInteger, 0, v, {}}; }
  static CsvCell Text(std::string v) { return {Kind::kText, 0, 0, std::move(v)}; }
};

struct CsvRow {
  std::string_view head;    // CsvRowHead()
  int64_t micro_step = -1;  // -1: the table has none
  const std::vector<CsvCell>* cells = nullptr;
};

/// The cells of a row that are the same in every step, as text.
std::string CsvRowHead(int64_t vpp_stage, std::string_view name);

/// `v` rounded to so many decimals as numpy.round() does it.
double RoundDecimals(double v, int digits);
/// Appends repr() of that.
void AppendRounded(std::string& out, double v, int digits);

/// Rows of one table, appended at each step. A file that is there already is continued.
class CsvTable {
 public:
  CsvTable(std::string directory, std::string prefix, std::vector<std::string> columns, bool micro_steps, int digits,
           int64_t steps_per_file);
  CsvTable(CsvTable&&) noexcept;
  CsvTable& operator=(CsvTable&&) = delete;
  ~CsvTable();

  /// One block of rows, for the next Flush(). A column whose values are all whole numbers is written as such, else all
  /// of its numbers have a point.
  void Add(int64_t step, std::span<const CsvRow> rows);
  /// Appends the blocks to the file of this step. What a full disk cut off is taken back, so that no row is half a row.
  /// `bytes`: by how much the file has grown is added there.
  Status Flush(int64_t step, uint64_t* bytes = nullptr);
  /// "{prefix}_{first}-{last}.csv" of a step.
  std::string FileOf(int64_t step) const;

 private:
  Status OpenFor(int64_t step);
  void Close();

  std::string directory_, prefix_;
  std::vector<std::string> columns_;
  bool micro_steps_;
  int digits_;
  int64_t steps_per_file_;
  std::string path_, pending_;
  int fd_ = -1;
};

}  // namespace msprobe
