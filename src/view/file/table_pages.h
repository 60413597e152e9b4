// Rows of a table out of the pages of an SQLite file, for reading all rows of a graph without SQLite.
// https://www.sqlite.org/fileformat2.html#b_tree_pages
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace msprobe::view {

/// What a row holds in one of its columns.
struct SqlValue {
  enum class Kind : uint8_t { kNull, kNumber, kText };  // kText: bytes as well
  Kind kind = Kind::kNull;
  int64_t integer = 0;  ///< of a number, cut off as SQLite does it
  double real = 0;      ///< likewise
  std::string_view text;

  bool IsNull() const { return kind == Kind::kNull; }
  bool IsNumber() const { return kind == Kind::kNumber; }
  void Set(int64_t value) { *this = {Kind::kNumber, value, static_cast<double>(value), {}}; }
  void Set(double value);
  void Set(std::string_view value) { *this = {Kind::kText, 0, 0, value}; }
};

/// Good until the next one is read.
struct SqlRow {
  int64_t id = 0;
  std::span<const SqlValue> values;  ///< of the columns asked for
};
using TakeSqlRow = std::function<Status(const SqlRow&)>;

class TablePages {
 public:
  static constexpr size_t kMostColumns = 12;
  /// Null when this is not a file that can be read so.
  static std::unique_ptr<const TablePages> Open(const std::string& path);
  ~TablePages();
  TablePages(const TablePages&) = delete;
  TablePages& operator=(const TablePages&) = delete;

  struct Range {
    uint32_t root = 0;             ///< page
    std::span<const int> columns;  ///< their places in a row, ascending
    int64_t first = 0, last = -1;  ///< row ids
  };
  /// Takes the rows in the order of their ids. False as soon as something is not as expected: SQLite may know better
  /// from *next on, the id behind the last row taken.
  StatusOr<bool> Read(const Range& range, const TakeSqlRow& take, int64_t* next) const;

 private:
  struct Walk;
  TablePages(int fd, uint32_t page_bytes, uint32_t usable, uint32_t pages)
      : fd_(fd), page_bytes_(page_bytes), usable_(usable), pages_(pages) {}
  bool ReadPage(uint32_t page, std::vector<uint8_t>* out) const;
  bool Visit(Walk* walk, uint32_t page, size_t depth) const;
  bool VisitLeaf(Walk* walk, const uint8_t* page) const;
  bool VisitInner(Walk* walk, const uint8_t* page, size_t depth) const;

  const int fd_;
  const uint32_t page_bytes_, usable_, pages_;
};

}  // namespace msprobe::view
