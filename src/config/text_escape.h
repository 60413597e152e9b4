// Texts in quotes, as Python and TOML have them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace msprobe {

/// Appends the character at `at`, or what it and the next stand for where it is a backslash, and goes behind it.
inline void TakeEscaped(std::string_view text, size_t* at, std::string* out) {
  if (text[*at] != '\\' || *at + 1 >= text.size()) {
    *out += text[(*at)++];
    return;
  }
  const char c = text[*at + 1];
  *out += c == 'n' ? '\n' : c == 't' ? '\t' : c;
  *at += 2;
}

}  // namespace msprobe
