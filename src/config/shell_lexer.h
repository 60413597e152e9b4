// The words of a shell script, with quotes and expansions as they are written.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace msprobe {

struct ShellToken {
  enum class Kind : uint8_t { kWord, kOperator, kEndOfLine, kDocument };  // the last: lines of a here-document
  Kind kind = Kind::kWord;
  std::string_view text;  // within the script; NAME=( ... ) is one word
  int line = 0;           // from 1
  bool quoted = false;    // of a here-document: nothing in it is expanded
};

struct ShellField {
  std::string text;
  std::string file;
  int line = 0;
};

inline constexpr size_t kMaxShellBytes = 16 << 20;
inline constexpr size_t kMaxShellTokens = 1 << 20;

/// Without comments; here-documents behind the line that they belong to; a backslash before the end of a line is left
/// in the word around it. `first_line` is that of the text in its file. kBadInput with path and line for a quote or
/// bracket without an end, and for scripts beyond the limits above.
StatusOr<std::vector<ShellToken>> ShellTokens(std::string_view text, const std::string& path, int first_line = 1);

}  // namespace msprobe
