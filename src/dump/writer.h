// Writing dump.json, stack.json and construct.json in the exact layout of Python's json.dump(indent=1), as a stream.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "tensor/stats.h"

namespace msprobe {

/// Formats JSON with indent 1 the way json.dump(obj, indent=1) does. Append-only and without a tree: the caller opens
/// and closes containers, the writer puts commas, newlines and indentation.
class JsonStream {
 public:
  /// `depth` is the nesting level at which the text will stand in the file. A value at that level starts where `out`
  /// ends; a Key() at that level starts on a line of its own, behind a comma if it is not the first.
  explicit JsonStream(std::string* out, int depth = 0) : out_(out), base_(depth), depth_(depth) {}
  void BeginObject();
  void EndObject();
  void BeginArray();
  void EndArray();
  void Key(std::string_view key);
  void String(std::string_view s);
  void Number(double v);
  void Int(int64_t v);
  void UInt(uint64_t v);
  void Bool(bool v);
  void Null();
  /// JSON text already formatted for this depth.
  void Raw(std::string_view json);
  /// Text of members of the open object, without its braces.
  void Members(std::string_view json);

 private:
  void Prefix();
  void NewLine();
  void Open(char bracket);
  void Close(char bracket);
  std::string* out_;
  int base_;
  int depth_;
  bool first_ = true;
  bool after_key_ = false;
};

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
  bool any_ = false;  // an entry stands in the file
};

}  // namespace msprobe
