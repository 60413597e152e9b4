// Text the way Python writes it, because every file we share with other tools was written by Python first.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace msprobe {

/// Appends `v` as Python's repr(float): shortest digits that round-trip, "1.0", "1e-05", "nan", "inf", "-inf".
void AppendPyRepr(std::string& out, double v);
std::string PyRepr(double v);

/// Appends `v` as json.dumps writes it: like repr, but NaN, Infinity, -Infinity.
void AppendJsonNumber(std::string& out, double v);
void AppendInt(std::string& out, int64_t v);

/// Appends a quoted JSON string. With `ascii` non-ASCII is \uXXXX as json.dumps does by default; bytes that are not
/// UTF-8 become U+FFFD, so that the output always parses.
void AppendJsonString(std::string& out, std::string_view s, bool ascii = true);

/// True when `s` is UTF-8 throughout.
bool IsUtf8(std::string_view s);
/// `s` with U+FFFD for each byte that is not UTF-8.
std::string ToUtf8(std::string_view s);
/// `s` as it may stand on one line of a terminal: control characters as \n, \t, \x1b, bytes that are not UTF-8 as
/// U+FFFD.
std::string OneLine(std::string_view s);

/// `s` as the text of a page: UTF-8, with what HTML would read as its own escaped.
std::string PageText(std::string_view s);

/// Appends `s` as Python's repr(str): single quotes unless the text holds one and no double quote.
void AppendPyStrRepr(std::string& out, std::string_view s);

/// "%.{digits}f" of Python, without a locale.
void AppendFixed(std::string& out, double v, int digits);

bool StartsWith(std::string_view s, std::string_view prefix);
bool EndsWith(std::string_view s, std::string_view suffix);
bool Contains(std::string_view s, std::string_view part);
/// The same letters but for the case of those of ASCII. Inline: names of types are looked up for each item of a dump.
inline bool EqualsNoCase(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (lower(a[i]) != lower(b[i])) return false;
  }
  return true;
}
/// True when `s` is one or more decimal digits.
bool IsDigits(std::string_view s);
/// The parts of `text` between separators, one more than there are separators.
std::vector<std::string_view> Split(std::string_view text, char separator);
/// Without white space at both ends.
std::string_view Trimmed(std::string_view text);
/// Whether all of the text is like the pattern, in which * stands for anything and ? for one character. Takes at most
/// the product of both lengths.
bool MatchesWildcard(std::string_view text, std::string_view pattern);

/// Number of letters to insert, remove, replace or exchange with a neighbour to make `a` of `b`.
size_t EditDistance(std::string_view a, std::string_view b);
/// The one of `words` (not empty) that takes the fewest edits.
std::string_view NearestWord(std::string_view word, std::span<const std::string_view> words);
/// The same where it is likely what was meant: at most a third of its letters differ, or it begins with `word`.
std::optional<std::string_view> LikelyWord(std::string_view word, std::span<const std::string_view> words);

}  // namespace msprobe
