// The JSON parser: one pass over a text, without recursion, into a document.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/message.h"
#include "base/status.h"
#include "json/value.h"

namespace msprobe {

inline constexpr int kMaxJsonDepth = 410;  // values nested 400 deep, in an op
inline constexpr uint64_t kMaxJsonBytes = uint64_t{128} << 20;

struct JsonOptions {
  bool strict = false;           ///< no NaN, no trailing comma, no byte order mark; strings are Unicode, not repaired
  bool numbers_as_text = false;  ///< numbers become strings of the digits they are written with
};

/// Bare NaN and Infinity are accepted, because healthy dumps hold them, and so are trailing commas. Deeper nesting than
/// kMaxJsonDepth is refused, and so are texts longer than kMaxJsonBytes (values need up to 16 times the memory of their
/// text). Numbers are read exactly; beyond double they are 0 or infinite, as in Python. Bytes of strings that are not
/// UTF-8 become U+FFFD. A byte order mark is skipped. `what` names the text in errors; `base` is where `text` starts in
/// its file, so that the byte in the error is the file's.
Status ParseJson(std::string_view text, std::string_view what, JsonDoc* doc, uint64_t base = 0,
                 JsonOptions options = {});

/// A byte as it may stand in a message: 'x' or byte 0x80.
Message ShownByte(char c);

}  // namespace msprobe
