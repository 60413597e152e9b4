#include "base/text.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstring>

namespace msprobe {
namespace {

void AppendFinite(std::string& out, double v) {
  char buf[64];
  const double a = std::fabs(v);
  // Python switches to the exponent form at 1e16 and below 1e-4.
  if (a != 0 && (a >= 1e16 || a < 1e-4)) {
    auto r = std::to_chars(buf, buf + sizeof buf, v, std::chars_format::scientific);
    out.append(buf, r.ptr);
    return;
  }
  auto r = std::to_chars(buf, buf + sizeof buf, v, std::chars_format::fixed);
  const size_t n = static_cast<size_t>(r.ptr - buf);
  out.append(buf, n);
  if (!std::memchr(buf, '.', n)) out += ".0";
}

// Length of the valid UTF-8 sequence at s[i], its code point in `cp`; 0 when the bytes are not UTF-8.
size_t Utf8At(std::string_view s, size_t i, uint32_t& cp) {
  const auto byte = [&](size_t k) { return static_cast<unsigned char>(s[k]); };
  const unsigned char c = byte(i);
  size_t n = 0;
  if (c < 0x80) {
    cp = c;
    return 1;
  }
  if ((c & 0xE0) == 0xC0) {
    n = 2;
    cp = c & 0x1F;
  } else if ((c & 0xF0) == 0xE0) {
    n = 3;
    cp = c & 0x0F;
  } else if ((c & 0xF8) == 0xF0) {
    n = 4;
    cp = c & 0x07;
  } else {
    return 0;
  }
  if (i + n > s.size()) return 0;
  for (size_t k = 1; k < n; ++k) {
    if ((byte(i + k) & 0xC0) != 0x80) return 0;
    cp = (cp << 6) | (byte(i + k) & 0x3F);
  }
  static constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (cp < kLeast[n] || cp > 0x10FFFF || (cp >= 0xD800 && cp <= 0xDFFF)) return 0;
  return n;
}

bool IsPlain(char c) { return c >= 0x20 && c < 0x7F && c != '"' && c != '\\'; }

void AppendHex4(std::string& out, uint32_t v) {
  static constexpr char kHex[] = "0123456789abcdef";
  out += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) out += kHex[(v >> shift) & 15];
}

}  // namespace

void AppendPyRepr(std::string& out, double v) {
  if (std::isnan(v)) {
    out += "nan";
  } else if (std::isinf(v)) {
    out += v < 0 ? "-inf" : "inf";
  } else {
    AppendFinite(out, v);
  }
}

std::string PyRepr(double v) {
  std::string s;
  AppendPyRepr(s, v);
  return s;
}

void AppendJsonNumber(std::string& out, double v) {
  if (std::isnan(v)) {
    out += "NaN";
  } else if (std::isinf(v)) {
    out += v < 0 ? "-Infinity" : "Infinity";
  } else {
    AppendFinite(out, v);
  }
}

void AppendInt(std::string& out, int64_t v) {
  char buf[24];
  auto r = std::to_chars(buf, buf + sizeof buf, v);
  out.append(buf, r.ptr);
}

void AppendJsonString(std::string& out, std::string_view s, bool ascii) {
  out += '"';
  for (size_t i = 0; i < s.size();) {
    // Most texts are one run of characters that stand as they are.
    size_t end = i;
    while (end < s.size() && IsPlain(s[end])) ++end;
    out.append(s, i, end - i);
    i = end;
    if (i == s.size()) break;
    const unsigned char c = static_cast<unsigned char>(s[i]);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
      ++i;
      continue;
    }
    switch (c) {
      case '\n':
        out += "\\n";
        ++i;
        continue;
      case '\r':
        out += "\\r";
        ++i;
        continue;
      case '\t':
        out += "\\t";
        ++i;
        continue;
      case '\b':
        out += "\\b";
        ++i;
        continue;
      case '\f':
        out += "\\f";
        ++i;
        continue;
      default: break;
    }
    uint32_t cp = 0xFFFD;
    size_t n = Utf8At(s, i, cp);
    if (n == 0) {
      cp = 0xFFFD;
      n = 1;
      if (!ascii) {
        out += "\xEF\xBF\xBD";
        i += n;
        continue;
      }
    }
    if (cp < 0x20) {
      AppendHex4(out, cp);
    } else if (!ascii) {
      out.append(s.substr(i, n));
    } else if (cp >= 0x10000) {
      AppendHex4(out, 0xD800 + ((cp - 0x10000) >> 10));
      AppendHex4(out, 0xDC00 + ((cp - 0x10000) & 0x3FF));
    } else {
      AppendHex4(out, cp);
    }
    i += n;
  }
  out += '"';
}

bool IsUtf8(std::string_view s) {
  for (size_t i = 0; i < s.size();) {
    uint64_t word = 0;
    if (s.size() - i >= sizeof word) {
      std::memcpy(&word, s.data() + i, sizeof word);
      if ((word & 0x8080808080808080u) == 0) {
        i += sizeof word;
        continue;
      }
    }
    uint32_t cp = 0;
    const size_t n = Utf8At(s, i, cp);
    if (n == 0) return false;
    i += n;
  }
  return true;
}

std::string ToUtf8(std::string_view s) {
  std::string out;
  out.reserve(s.size());
  for (size_t i = 0; i < s.size();) {
    uint32_t cp = 0;
    const size_t n = Utf8At(s, i, cp);
    n == 0 ? out.append("\xEF\xBF\xBD") : out.append(s.substr(i, n));
    i += n == 0 ? 1 : n;
  }
  return out;
}

std::string OneLine(std::string_view s) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  out.reserve(s.size());
  for (size_t i = 0; i < s.size();) {
    uint32_t cp = 0xFFFD;
    const size_t n = Utf8At(s, i, cp);
    const bool control = n > 0 && (cp < 0x20 || (cp >= 0x7F && cp < 0xA0) || cp == 0x2028 || cp == 0x2029);
    if (n == 0) {
      out += "\xEF\xBF\xBD";
    } else if (!control) {
      out.append(s.substr(i, n));
    } else if (cp == '\n' || cp == '\t' || cp == '\r') {
      out += '\\';
      out += cp == '\n' ? 'n' : cp == '\t' ? 't' : 'r';
    } else if (cp < 0x100) {
      out += "\\x";
      out += kHex[cp >> 4];
      out += kHex[cp & 15];
    } else {
      AppendHex4(out, cp);
    }
    i += n == 0 ? 1 : n;
  }
  return out;
}

void AppendPyStrRepr(std::string& out, std::string_view s) {
  const bool single = s.find('\'') != std::string_view::npos;
  const bool dbl = s.find('"') != std::string_view::npos;
  const char quote = single && !dbl ? '"' : '\'';
  static constexpr char kHex[] = "0123456789abcdef";
  out += quote;
  for (char ch : s) {
    const unsigned char c = static_cast<unsigned char>(ch);
    if (ch == quote || ch == '\\') {
      out += '\\';
      out += ch;
    } else if (ch == '\n') {
      out += "\\n";
    } else if (ch == '\r') {
      out += "\\r";
    } else if (ch == '\t') {
      out += "\\t";
    } else if (c < 0x20 || c == 0x7F) {
      out += "\\x";
      out += kHex[c >> 4];
      out += kHex[c & 15];
    } else {
      out += ch;
    }
  }
  out += quote;
}

void AppendFixed(std::string& out, double v, int digits) {
  char buf[400];
  auto r = std::to_chars(buf, buf + sizeof buf, v, std::chars_format::fixed, digits);
  if (r.ec == std::errc()) out.append(buf, r.ptr);
}

bool StartsWith(std::string_view s, std::string_view prefix) { return s.substr(0, prefix.size()) == prefix; }
bool EndsWith(std::string_view s, std::string_view suffix) {
  return s.size() >= suffix.size() && s.substr(s.size() - suffix.size()) == suffix;
}
bool Contains(std::string_view s, std::string_view part) { return s.find(part) != std::string_view::npos; }
bool IsDigits(std::string_view s) {
  if (s.empty()) return false;
  for (char c : s) {
    if (c < '0' || c > '9') return false;
  }
  return true;
}

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(separator, at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), row(b.size() + 1), next(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    next[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      next[j] = std::min({row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      const bool exchanged = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (exchanged) next[j] = std::min(next[j], before[j - 2] + 1);
    }
    before.swap(row);
    row.swap(next);
  }
  return row[b.size()];
}

std::string_view NearestWord(std::string_view word, std::span<const std::string_view> words) {
  constexpr size_t kLongestWord = 64;
  const auto distance = [&](std::string_view w) { return EditDistance(word.substr(0, kLongestWord), w); };
  return *std::min_element(words.begin(), words.end(), [&](auto a, auto b) { return distance(a) < distance(b); });
}

std::optional<std::string_view> LikelyWord(std::string_view word, std::span<const std::string_view> words) {
  constexpr size_t kShortest = 3;
  if (words.empty() || word.empty()) return std::nullopt;
  const std::string_view nearest = NearestWord(word, words);
  if (word.size() <= 2 * nearest.size() && EditDistance(word, nearest) * 3 <= nearest.size()) return nearest;
  const auto begins = [&](std::string_view w) { return w.starts_with(word); };
  const auto first = std::find_if(words.begin(), words.end(), begins);
  if (word.size() < kShortest || first == words.end()) return std::nullopt;
  return *first;
}

std::string PageText(std::string_view s) {
  std::string out;
  for (const char c : ToUtf8(s)) {
    switch (c) {
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '&': out += "&amp;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
  return out;
}

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.remove_suffix(1);
  return text;
}

bool MatchesWildcard(std::string_view text, std::string_view pattern) {
  size_t at = 0, p = 0, star = std::string_view::npos, from = 0;
  while (at < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      from = at;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[at])) {
      ++at, ++p;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      at = ++from;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace msprobe
