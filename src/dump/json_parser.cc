#include "dump/json_parser.h"

#include <charconv>
#include <cstring>
#include <limits>

#include "base/text.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace msprobe {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

/// First byte from `p` on that ends a plain part of a string: a quote, a backslash or a control character.
const char* FindSpecial(const char* p, const char* end) {
#if defined(__SSE2__)
  const __m128i quote = _mm_set1_epi8('"'), slash = _mm_set1_epi8('\\'), last_control = _mm_set1_epi8(0x1F);
  for (; end - p >= 16; p += 16) {
    const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    const __m128i control = _mm_cmpeq_epi8(_mm_min_epu8(v, last_control), v);
    const __m128i hit = _mm_or_si128(control, _mm_or_si128(_mm_cmpeq_epi8(v, quote), _mm_cmpeq_epi8(v, slash)));
    if (const int mask = _mm_movemask_epi8(hit)) return p + __builtin_ctz(static_cast<unsigned>(mask));
  }
#endif
  while (p < end && *p != '"' && *p != '\\' && static_cast<unsigned char>(*p) >= 0x20) ++p;
  return p;
}

void AppendUtf8(std::string& out, unsigned code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | (code >> 6));
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0 | (code >> 12));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | (code >> 18));
    out += static_cast<char>(0x80 | ((code >> 12) & 0x3F));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  }
}

/// Whether a number too large or too small for a double is too small: by the place of its first digit.
bool IsTiny(const char* p, const char* end) {
  int64_t place = 0;  // of the first digit that is not 0, counted from the point
  bool point = false, found = false;
  for (; p < end && *p != 'e' && *p != 'E'; ++p) {
    if (*p == '.') {
      point = true;
    } else if (IsDigit(*p)) {
      found = found || *p != '0';
      if (!point && found) ++place;
      if (point && !found) --place;
    }
  }
  if (p == end) return place < 0;
  ++p;
  const bool minus = *p == '-';
  if (*p == '-' || *p == '+') ++p;
  int64_t exponent = 0;
  for (; p < end && exponent < (int64_t{1} << 50); ++p) exponent = exponent * 10 + (*p - '0');
  return place + (minus ? -exponent : exponent) < 0;
}

}  // namespace

void JsonParser::SkipSpace() {
  while (p_ < end_ && (*p_ == ' ' || *p_ == '\n' || *p_ == '\r' || *p_ == '\t')) ++p_;
}

bool JsonParser::operator()(rapidjson::Document& out) {
  for (;;) {
    SkipSpace();
    if (p_ == end_) return Fail("a value");
    const bool object = *p_ == '{';
    bool done = false;
    if (object || *p_ == '[') {
      if (depth_ == kMaxJsonDepth) return Fail("no deeper nesting");
      ++p_;
      frames_[depth_++] = {object, 0};
      object ? out.StartObject() : out.StartArray();
      SkipSpace();
      if (p_ == end_ || *p_ != (object ? '}' : ']')) {
        if (object && !Key(out)) return false;
        continue;
      }
      End(out);
    } else if (!Scalar(out)) {
      return false;
    }
    if (!AfterValue(out, &done)) return false;
    if (done) return true;
  }
}

bool JsonParser::AfterValue(rapidjson::Document& out, bool* done) {
  for (;;) {
    SkipSpace();
    if (depth_ == 0) {
      *done = true;
      return p_ == end_ || Fail("the end");
    }
    Frame& frame = frames_[depth_ - 1];
    ++frame.count;
    const char close = frame.object ? '}' : ']';
    if (p_ == end_) return Fail(frame.object ? "',' or '}'" : "',' or ']'");
    if (*p_ == ',') {
      ++p_;
      SkipSpace();
      // A comma before the close is one too many, and harmless.
      if (p_ == end_ || *p_ != close) return !frame.object || Key(out);
    } else if (*p_ != close) {
      return Fail(frame.object ? "',' or '}'" : "',' or ']'");
    }
    End(out);
  }
}

void JsonParser::End(rapidjson::Document& out) {
  const Frame frame = frames_[--depth_];
  ++p_;
  frame.object ? out.EndObject(frame.count) : out.EndArray(frame.count);
}

bool JsonParser::Key(rapidjson::Document& out) {
  if (p_ == end_ || *p_ != '"') return Fail("a name in double quotes");
  std::string_view text;
  if (!String(&text)) return false;
  out.Key(text.data(), static_cast<rapidjson::SizeType>(text.size()), true);
  SkipSpace();
  if (p_ == end_ || *p_ != ':') return Fail("':'");
  ++p_;
  return true;
}

bool JsonParser::Scalar(rapidjson::Document& out) {
  switch (*p_) {
    case '"': {
      std::string_view text;
      if (!String(&text)) return false;
      return out.String(text.data(), static_cast<rapidjson::SizeType>(text.size()), true);
    }
    case 't': return Literal("true") && out.Bool(true);
    case 'f': return Literal("false") && out.Bool(false);
    case 'n': return Literal("null") && out.Null();
    case 'N': return Literal("NaN") && out.Double(std::numeric_limits<double>::quiet_NaN());
    case 'I': return Literal("Infinity") && out.Double(std::numeric_limits<double>::infinity());
    default: return Number(out);
  }
}

bool JsonParser::Literal(std::string_view word) {
  if (static_cast<size_t>(end_ - p_) < word.size() || std::memcmp(p_, word.data(), word.size()) != 0) {
    return Fail("a value");
  }
  p_ += word.size();
  return true;
}

bool JsonParser::Number(rapidjson::Document& out) {
  const char* start = p_;
  const char* p = p_;
  const bool minus = *p == '-';
  if (minus) ++p;
  if (minus && p < end_ && *p == 'I') {
    ++p_;
    return Literal("Infinity") && out.Double(-std::numeric_limits<double>::infinity());
  }
  if (p == end_ || !IsDigit(*p)) return Fail("a value");
  uint64_t value = 0;
  bool fits = true;
  if (*p == '0') {
    ++p;
  } else {
    for (; p < end_ && IsDigit(*p); ++p) {
      const auto digit = static_cast<unsigned>(*p - '0');
      fits = fits && value <= (std::numeric_limits<uint64_t>::max() - digit) / 10;
      value = value * 10 + digit;
    }
  }
  p_ = p;
  if (p < end_ && (*p == '.' || *p == 'e' || *p == 'E')) return Float(out, start);
  constexpr uint64_t kMinusLimit = uint64_t{1} << 63;
  if (!fits || (minus && value > kMinusLimit)) return Float(out, start);
  if (!minus) {
    return value <= std::numeric_limits<unsigned>::max() ? out.Uint(static_cast<unsigned>(value)) : out.Uint64(value);
  }
  const auto negative = static_cast<int64_t>(uint64_t{0} - value);
  return negative >= std::numeric_limits<int>::min() ? out.Int(static_cast<int>(negative)) : out.Int64(negative);
}

bool JsonParser::Float(rapidjson::Document& out, const char* start) {
  if (p_ < end_ && *p_ == '.') {
    ++p_;
    if (p_ == end_ || !IsDigit(*p_)) return Fail("a digit");
    while (p_ < end_ && IsDigit(*p_)) ++p_;
  }
  if (p_ < end_ && (*p_ == 'e' || *p_ == 'E')) {
    ++p_;
    if (p_ < end_ && (*p_ == '+' || *p_ == '-')) ++p_;
    if (p_ == end_ || !IsDigit(*p_)) return Fail("a digit");
    while (p_ < end_ && IsDigit(*p_)) ++p_;
  }
  double value = 0;
  if (std::from_chars(start, p_, value).ec == std::errc::result_out_of_range) {
    // As Python reads them: too large is infinite, too small is zero.
    value = IsTiny(start, p_) ? 0.0 : std::numeric_limits<double>::infinity();
    if (*start == '-') value = -value;
  }
  return out.Double(value);
}

bool JsonParser::String(std::string_view* text) {
  const char* start = ++p_;
  p_ = FindSpecial(p_, end_);
  if (p_ < end_ && *p_ == '"') {
    *text = {start, static_cast<size_t>(p_ - start)};
    ++p_;
    return MakeUtf8(text);
  }
  scratch_.clear();
  for (;;) {
    scratch_.append(start, p_);
    if (p_ == end_) return Fail("a closing quote");
    if (*p_ == '"') break;
    if (*p_ != '\\') return Fail("no control character in a string");
    ++p_;
    if (!Escape()) return false;
    start = p_;
    p_ = FindSpecial(p_, end_);
  }
  ++p_;
  *text = scratch_;
  return MakeUtf8(text);
}

bool JsonParser::MakeUtf8(std::string_view* text) {
  if (IsUtf8(*text)) return true;
  scratch_ = ToUtf8(*text);
  *text = scratch_;
  return true;
}

bool JsonParser::Escape() {
  if (p_ == end_) return Fail("an escape");
  static constexpr char kFrom[] = "\"\\/bfnrt", kTo[] = "\"\\/\b\f\n\r\t";
  if (const void* found = std::memchr(kFrom, *p_, sizeof kFrom - 1)) {
    scratch_ += kTo[static_cast<const char*>(found) - kFrom];
    ++p_;
    return true;
  }
  if (*p_ != 'u') return Fail("an escape");
  ++p_;
  unsigned code = 0, low = 0;
  if (!Hex4(&code)) return false;
  if (code >= 0xD800 && code < 0xDC00 && end_ - p_ >= 6 && p_[0] == '\\' && p_[1] == 'u') {
    const char* after = p_;
    p_ += 2;
    if (!Hex4(&low)) return false;
    if (low >= 0xDC00 && low < 0xE000) {
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    } else {
      p_ = after;
    }
  }
  // Half a surrogate pair is no character.
  AppendUtf8(scratch_, code >= 0xD800 && code < 0xE000 ? 0xFFFD : code);
  return true;
}

bool JsonParser::Hex4(unsigned* code) {
  if (end_ - p_ < 4) return Fail("four hexadecimal digits");
  const auto r = std::from_chars(p_, p_ + 4, *code, 16);
  if (r.ptr != p_ + 4) return Fail("four hexadecimal digits");
  p_ += 4;
  return true;
}

}  // namespace msprobe
