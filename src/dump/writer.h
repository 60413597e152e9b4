// Writing the files of a dump, which are readable at any time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"

namespace msprobe {

/// A JSON object file that grows entry by entry and is complete JSON after every Flush(): the closing braces are
/// written behind the last entry and overwritten by the next one. After kill -9 everything flushed is readable, also by
/// other tools.
class GrowingJsonFile {
 public:
  /// `head` is everything up to and with the opening brace of the growing object, `tail` everything that closes the
  /// file. The file appears under its final name with mode 0640, already complete JSON; an existing one is replaced.
  static StatusOr<std::unique_ptr<GrowingJsonFile>> Create(const std::string& path, std::string head, std::string tail);
  ~GrowingJsonFile();
  /// `entries` is one or more "\n  \"name\": {...}" texts joined by ','; the writer puts the comma before them if
  /// needed; `count` is how many they are. What was appended is written by Flush(), or earlier when it is much.
  Status Append(std::string_view entries, uint64_t count = 0);
  /// Writes what is pending followed by the tail. After an error (disk full, ...) the file is complete JSON with all
  /// earlier entries, and the next Flush() tries again. A file that somebody has deleted is an error, too.
  Status Flush();
  Status Close();
  /// What closes the file from the next Flush() on.
  void SetTail(std::string tail);
  /// Entries that are in the file, by the counts given to Append().
  uint64_t entries() const { return entries_; }
  uint64_t bytes() const { return offset_ + (any_ ? tail_ : empty_tail_).size(); }

 private:
  GrowingJsonFile() = default;
  Status WriteAt(std::string_view text, uint64_t offset);
  void PutTailBack();
  int fd_ = -1;
  std::string path_, pending_, tail_, empty_tail_;
  uint64_t offset_ = 0;
  uint64_t entries_ = 0, pending_entries_ = 0;
  bool any_ = false;           // an entry stands in the file
  bool tail_changed_ = false;  // the file ends with an earlier one
};

}  // namespace msprobe
