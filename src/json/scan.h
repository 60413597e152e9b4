// A structural scan of JSON text: it finds where strings and containers end, 64 bytes at a time, and builds nothing.
// The index of a dump is made with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace msprobe {

inline constexpr size_t kNoEnd = static_cast<size_t>(-1);

/// First byte at or after `pos` that is not JSON white space; text.size() if there is none.
size_t SkipSpace(std::string_view text, size_t pos);

/// `pos` is just behind an opening quote; the result is the position of the closing one, kNoEnd when the text ends
/// before. `escaped` tells whether a backslash stood inside.
size_t FindStringEnd(std::string_view text, size_t pos, bool* escaped);

/// `pos` is at '{' or '['; the result is behind the matching close, kNoEnd when the text ends before. Kinds of brackets
/// are not told apart: the parser does that when the value is read. `deepest` (may be null) receives the deepest
/// nesting, 1 for a flat container.
size_t FindContainerEnd(std::string_view text, size_t pos, uint64_t* deepest = nullptr);

/// Deepest nesting of brackets outside strings anywhere in `text`.
uint64_t NestingDepth(std::string_view text);

}  // namespace msprobe
