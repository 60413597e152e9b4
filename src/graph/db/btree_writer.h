// A table or an index of an SQLite file, written page by page from rows that come in the order of their keys.
// https://www.sqlite.org/fileformat2.html#b_tree_pages
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>

#include "graph/db/page_file.h"
#include "graph/db/sql_record.h"

namespace msprobe {

class BTreeWriter {
 public:
  enum class Kind : uint8_t { kTable, kIndex };
  /// Of an empty one, whose root page is in the file.
  BTreeWriter(PageFile* file, Kind kind, uint32_t root) : file_(file), kind_(kind), root_(root) {}
  /// The next row of a table: row ids ascend.
  void AddRow(int64_t row_id, SqlRecord* row);
  /// The next entry of an index: a record of its columns and the row id, in ascending order.
  void AddEntry(SqlRecord* entry);
  /// Once, behind all of them.
  void Finish();

 private:
  struct Page {
    std::array<char, kSqlPageBytes> bytes;
    uint32_t cells = 0;
    uint32_t content = kSqlPageBytes;  // where the cells start, which grow down
  };
  /// One height of the tree. A page needs a cell, so a full one waits until there is one for the page behind it.
  struct Level {
    Page now, full;
    bool waits = false;
    uint32_t full_right = 0;  // the last child of `full`
    std::string divider;      // between the two: a cell without the number of its child
  };
  Level& At(size_t level);
  void AddCell(size_t level, uint32_t child, std::string_view cell);
  void FlushFull(size_t level);
  void FillBehindFull(size_t level);
  uint32_t Write(size_t level, uint32_t right, Page* page);
  void FillHead(size_t level, uint32_t right, Page* page) const;
  size_t LocalBytes(size_t payload) const;
  uint32_t WriteOverflow(std::string_view rest);
  /// Writes the local part and what follows it in a cell.
  char* PutPayload(char* out, std::span<const std::string_view> parts, size_t payload, size_t local);

  PageFile* file_;
  Kind kind_;
  uint32_t root_;
  uint64_t last_row_ = 0;
  std::deque<Level> levels_;  // from the leaves up
  std::string cell_, joined_;
};

}  // namespace msprobe
