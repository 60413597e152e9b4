// A row in SQLite's record format: https://www.sqlite.org/fileformat2.html#record_format
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "graph/db/sqlite_format.h"

namespace msprobe {

/// The values of a row, added from left to right.
class SqlRecord {
 public:
  void Clear() {
    types_.clear();
    body_.clear();
    tails_ = 0;
  }
  void Null() { types_ += '\0'; }
  void Int(int64_t v);
  /// For columns that hold numbers: NaN becomes NULL, and what is whole is stored as an integer, as SQLite does.
  void Real(double v);
  void Text(std::string_view text) {
    Type(text.size() * 2 + kSqlText);
    body_ += text;
  }
  void Blob(std::string_view bytes) {
    Type(bytes.size() * 2 + kSqlBlob);
    body_ += bytes;
  }
  /// A text that is not copied: it must live until the record is stored. Only such texts and NULL may follow it.
  void TailText(std::string_view text) {
    Type(text.size() * 2 + kSqlText);
    parts_[kHeadParts + tails_++] = text;
  }
  /// What the record is stored as, one behind the other. Good until the next change.
  std::span<const std::string_view> Parts();

  static constexpr size_t kMostTails = 2;

 private:
  static constexpr size_t kHeadParts = 3;  // size of the header, types, values
  void Type(uint64_t type);

  std::string types_, body_;
  size_t tails_ = 0;
  std::array<char, kMostVarint> size_{};
  std::array<std::string_view, kHeadParts + kMostTails> parts_;
};

}  // namespace msprobe
