#include "json/parser.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <limits>

#include "base/message.h"
#include "base/text.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace msprobe {
namespace {

constexpr ptrdiff_t kSureDigits = 19;  // always fit uint64_t
constexpr int64_t kMostPlaces = 27;    // 5 to that power fits uint64_t
constexpr int kShortString = 32;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool IsPlain(char c) { return c != '"' && c != '\\' && static_cast<unsigned char>(c) >= 0x20; }

/// Appends one character; `code` must be below 0x110000.
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

/// Powers of five, with their first bit at the top: 5^k is value >> shift.
struct PowerOfFive {
  uint64_t value;
  int shift;
};
constexpr auto kPowersOfFive = [] {
  std::array<PowerOfFive, kMostPlaces + 1> out{};
  uint64_t power = 1;
  for (PowerOfFive& p : out) {
    p.shift = std::countl_zero(power);
    p.value = power << p.shift;
    power *= 5;
  }
  return out;
}();

/// The double nearest to digits / 10^places. The quotient has 62 bits or more, of which the last one says whether
/// anything was left, so the conversion rounds once and right.
double Divided(uint64_t digits, int64_t places) {
  if (digits == 0) return 0;
  if (places == 0) return static_cast<double>(digits);
  __extension__ using Wide = unsigned __int128;
  const PowerOfFive& five = kPowersOfFive[static_cast<size_t>(places)];
  const int shift = std::countl_zero(digits);
  const Wide above = static_cast<Wide>(digits << shift) << 63;
  const auto quotient = static_cast<uint64_t>(above / five.value);
  const bool rest = above != static_cast<Wide>(quotient) * five.value;
  const int64_t exponent = five.shift - shift - places - 63;
  const auto scale = std::bit_cast<double>(static_cast<uint64_t>(1023 + exponent) << 52);
  return static_cast<double>(quotient | static_cast<uint64_t>(rest)) * scale;
}

/// Appends the digits at `p` to a number, eight at a time; without a check for overflow.
const char* AddDigits(const char* p, const char* end, uint64_t* number) {
  uint64_t eight;
  while (end - p >= 8) {
    std::memcpy(&eight, p, 8);
    if (((eight + 0x4646464646464646) | (eight - 0x3030303030303030)) & 0x8080808080808080) break;
    // Pairs, then fours, then all: the first digit is the lowest byte.
    eight -= 0x3030303030303030;
    eight = eight * 10 + (eight >> 8);
    eight = ((eight & 0x000000FF000000FF) * 0x000F424000000064 +
             ((eight >> 16) & 0x000000FF000000FF) * 0x0000271000000001) >>
            32;
    *number = *number * 100000000 + static_cast<uint32_t>(eight);
    p += 8;
  }
  for (; p < end && IsDigit(*p); ++p) *number = *number * 10 + static_cast<unsigned>(*p - '0');
  return p;
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

class JsonParser {
 public:
  JsonParser(std::string_view text, JsonOptions options, JsonDoc* doc)
      : begin_(text.data()), end_(begin_ + text.size()), options_(options), doc_(*doc) {}
  /// False after an error: then position() and expected() tell it.
  bool Run();
  size_t position() const { return static_cast<size_t>(p_ - begin_); }
  std::string_view expected() const { return expected_; }

 private:
  struct Frame {
    size_t first;  // of its elements on the stack
    bool object;
  };
  // Each reads from `p` on and returns where it stopped, null after an error.
  const char* Fail(const char* p, const char* expected) {
    p_ = p;
    expected_ = expected;
    return nullptr;
  }
  const char* SkipSpace(const char* p) const;
  const char* Open(const char* p);
  const char* Close(const char* p);
  const char* Key(const char* p);
  const char* Scalar(const char* p);
  const char* Literal(const char* p, std::string_view word, const JsonValue& value);
  const char* NotANumber(const char* p, std::string_view word, double value);
  const char* Number(const char* p);
  const char* Float(const char* start, const char* p, uint64_t digits);
  const char* NumberText(const char* start, const char* p);
  const char* String(const char* p, std::string_view* text);
  const char* LongString(const char* p, std::string_view* text);
  const char* Escape(const char* p);
  const char* Hex4(const char* p, unsigned* code);
  /// After a value: the comma and what follows, or the closes. Null at the end of the text too.
  const char* AfterValue(const char* p);
  void Push(const JsonValue& v) {
    if (top_ == doc_.stack_.size()) doc_.stack_.resize(std::max<size_t>(top_ * 2, 256));
    doc_.stack_[top_++] = v;
  }

  const char* begin_;
  const char* end_;
  const char* p_ = nullptr;  // of the error
  const JsonOptions options_;
  JsonDoc& doc_;
  size_t top_ = 0;  // values on the document's stack
  std::string_view expected_;
  std::string scratch_;  // a string with escapes, decoded
  int depth_ = 0;
  Frame frames_[kMaxJsonDepth];
};

inline const char* JsonParser::SkipSpace(const char* p) const {
  if (p < end_ && *p == ' ') ++p;
#if defined(__SSE2__)
  // Dumps are indented: after a line's end come spaces.
  if (p < end_ && *p == '\n') {
    const __m128i space = _mm_set1_epi8(' ');
    for (++p; end_ - p >= 16; p += 16) {
      const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
      const auto other = static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(v, space))) ^ 0xFFFFu;
      if (other == 0) continue;
      p += __builtin_ctz(other);
      break;
    }
  }
#endif
  while (p < end_ && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t')) ++p;
  return p;
}

bool JsonParser::Run() {
  for (const char* p = begin_; p != nullptr;) {
    p = SkipSpace(p);
    if (p == end_) {
      Fail(p, "a value");
    } else if (*p == '{' || *p == '[') {
      const char close = *p == '{' ? '}' : ']';
      p = Open(p);
      if (p != nullptr && (p == end_ || *p != close)) {
        if (close == '}') p = Key(p);
        continue;
      }
      if (p != nullptr) p = Close(p);
    } else if (*p == '"') {
      std::string_view text;
      p = String(p, &text);
      Push(JsonValue::Of(text));
    } else {
      p = Scalar(p);
    }
    if (p == nullptr || !expected_.empty()) break;
    p = AfterValue(p);
  }
  if (!expected_.empty()) return false;
  static_cast<JsonValue&>(doc_) = doc_.stack_[0];
  return true;
}

const char* JsonParser::Open(const char* p) {
  if (depth_ == kMaxJsonDepth) return Fail(p, "no deeper nesting");
  frames_[depth_++] = {top_, *p == '{'};
  return SkipSpace(p + 1);
}

const char* JsonParser::AfterValue(const char* p) {
  for (;;) {
    p = SkipSpace(p);
    if (depth_ == 0) return p == end_ ? nullptr : Fail(p, "the end");
    const bool object = frames_[depth_ - 1].object;
    const char close = object ? '}' : ']';
    if (p == end_) return Fail(p, object ? "',' or '}'" : "',' or ']'");
    if (*p == ',') {
      p = SkipSpace(p + 1);
      // A comma before the close is one too many, and harmless.
      if (p == end_ || *p != close || options_.strict) return object ? Key(p) : p;
    } else if (*p != close) {
      return Fail(p, object ? "',' or '}'" : "',' or ']'");
    }
    p = Close(p);
  }
}

const char* JsonParser::Close(const char* p) {
  const Frame frame = frames_[--depth_];
  const JsonValue* from = doc_.stack_.data() + frame.first;
  const size_t count = top_ - frame.first;
  top_ = frame.first;
  if (frame.object) {
    const auto members = doc_.arena_.Take<JsonMember>(count / 2);
    for (JsonMember& m : members) {
      m = {from[0].Text(), from[1]};
      from += 2;
    }
    Push(JsonValue::Of(members));
  } else {
    const auto items = doc_.arena_.Take<JsonValue>(count);
    if (count > 0) std::memcpy(static_cast<void*>(items.data()), from, count * sizeof(JsonValue));
    Push(JsonValue::Of(items));
  }
  return p + 1;
}

inline const char* JsonParser::Key(const char* p) {
  if (p == end_ || *p != '"') return Fail(p, "a name in double quotes");
  std::string_view text;
  p = String(p, &text);
  if (p == nullptr) return nullptr;
  Push(JsonValue::Of(text));
  if (p == end_ || *p != ':') {
    p = SkipSpace(p);
    if (p == end_ || *p != ':') return Fail(p, "':'");
  }
  return p + 1;
}

const char* JsonParser::Scalar(const char* p) {
  switch (*p) {
    case 't': return Literal(p, "true", JsonValue::Of(true));
    case 'f': return Literal(p, "false", JsonValue::Of(false));
    case 'n': return Literal(p, "null", JsonValue());
    case 'N': return NotANumber(p, "NaN", std::numeric_limits<double>::quiet_NaN());
    case 'I': return NotANumber(p, "Infinity", std::numeric_limits<double>::infinity());
    default: return Number(p);
  }
}

const char* JsonParser::Literal(const char* p, std::string_view word, const JsonValue& value) {
  if (static_cast<size_t>(end_ - p) < word.size() || std::memcmp(p, word.data(), word.size()) != 0) {
    return Fail(p, "a value");
  }
  Push(value);
  return p + word.size();
}

const char* JsonParser::NotANumber(const char* p, std::string_view word, double value) {
  return options_.strict ? Fail(p, "a value") : Literal(p, word, JsonValue::Of(value));
}

const char* JsonParser::Number(const char* p) {
  const char* start = p;
  const bool minus = *p == '-';
  if (minus) ++p;
  if (minus && p < end_ && *p == 'I') return NotANumber(p, "Infinity", -std::numeric_limits<double>::infinity());
  if (p == end_ || !IsDigit(*p)) return Fail(start, "a value");
  const char* first = p;
  uint64_t value = 0;
  bool fits = true;
  if (*p == '0') {
    ++p;
  } else {
    for (; p < end_ && IsDigit(*p); ++p) {
      const auto digit = static_cast<unsigned>(*p - '0');
      if (p - first >= kSureDigits) fits = fits && value <= (std::numeric_limits<uint64_t>::max() - digit) / 10;
      value = value * 10 + digit;
    }
  }
  constexpr uint64_t kMinusLimit = uint64_t{1} << 63;
  const bool whole = p == end_ || (*p != '.' && *p != 'e' && *p != 'E');
  if (!whole || !fits || (minus && value > kMinusLimit)) return Float(start, p, value);
  if (options_.numbers_as_text) return NumberText(start, p);
  Push(minus ? JsonValue::Of(static_cast<int64_t>(uint64_t{0} - value)) : JsonValue::Of(value));
  return p;
}

/// `p` is behind the whole part, and `digits` are its value if that has few enough.
const char* JsonParser::Float(const char* start, const char* p, uint64_t digits) {
  const char* first = *start == '-' ? start + 1 : start;
  int64_t places = 0;
  if (p < end_ && *p == '.') {
    const char* fraction = ++p;
    if (*first == '0') {  // zeros at the front are not significant
      while (p < end_ && *p == '0') ++p;
      first = p;
    } else {
      ++first;  // room for the point
    }
    p = AddDigits(p, end_, &digits);
    places = p - fraction;
    if (places == 0) return Fail(p, "a digit");
  }
  const bool sure = p - first <= kSureDigits;
  if (p < end_ && (*p == 'e' || *p == 'E')) {
    ++p;
    const bool minus = p < end_ && *p == '-';
    if (p < end_ && (*p == '+' || *p == '-')) ++p;
    if (p == end_ || !IsDigit(*p)) return Fail(p, "a digit");
    int64_t power = 0;
    for (; p < end_ && IsDigit(*p); ++p) power = std::min<int64_t>(power * 10 + (*p - '0'), 10000);
    places += minus ? power : -power;
  }
  if (options_.numbers_as_text) return NumberText(start, p);
  double value = 0;
  if (sure && places >= 0 && places <= kMostPlaces) {
    value = *start == '-' ? -Divided(digits, places) : Divided(digits, places);
  } else if (std::from_chars(start, p, value).ec == std::errc::result_out_of_range) {
    // As Python reads them: too large is infinite, too small is zero.
    value = IsTiny(start, p) ? 0.0 : std::numeric_limits<double>::infinity();
    if (*start == '-') value = -value;
  }
  Push(JsonValue::Of(value));
  return p;
}

const char* JsonParser::NumberText(const char* start, const char* p) {
  Push(JsonValue::Of(doc_.arena_.Keep({start, static_cast<size_t>(p - start)})));
  return p;
}

/// Most strings are plain and short: they are copied while their end is looked for.
inline const char* JsonParser::String(const char* p, std::string_view* text) {
#if defined(__SSE2__)
  const char* from = p + 1;
  char* const to = doc_.arena_.Room(kShortString);
  if (to != nullptr && end_ - from >= kShortString) {
    const __m128i quote = _mm_set1_epi8('"'), slash = _mm_set1_epi8('\\'), last_control = _mm_set1_epi8(0x1F);
    for (int at = 0; at < kShortString; at += 16) {
      const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + at), v);
      const __m128i control = _mm_cmpeq_epi8(_mm_min_epu8(v, last_control), v);
      const __m128i hit = _mm_or_si128(control, _mm_or_si128(_mm_cmpeq_epi8(v, quote), _mm_cmpeq_epi8(v, slash)));
      const auto high = static_cast<unsigned>(_mm_movemask_epi8(v));
      const auto mask = static_cast<unsigned>(_mm_movemask_epi8(hit));
      if (mask == 0 && high == 0) continue;
      const unsigned before = (mask & (0u - mask)) - 1;  // all bits without a hit
      if (mask == 0 || (high & before) != 0) break;
      const int length = at + __builtin_ctz(mask);
      if (from[length] != '"') break;
      doc_.arena_.Take(static_cast<size_t>(length));
      *text = {to, static_cast<size_t>(length)};
      return from + length + 1;
    }
  }
#endif
  return LongString(p, text);
}

const char* JsonParser::LongString(const char* p, std::string_view* text) {
  const char* start = ++p;
  while (p < end_ && IsPlain(*p)) ++p;
  if (p < end_ && *p == '"') {
    *text = {start, static_cast<size_t>(p - start)};
  } else {
    scratch_.clear();
    for (;;) {
      scratch_.append(start, p);
      if (p == end_) return Fail(p, "a closing quote");
      if (*p == '"') break;
      if (*p != '\\') return Fail(p, "no control character in a string");
      p = Escape(p + 1);
      if (p == nullptr) return nullptr;
      for (start = p; p < end_ && IsPlain(*p); ++p) continue;
    }
    *text = scratch_;
  }
  // Tables, databases and pages only take UTF-8.
  if (!IsUtf8(*text)) {
    if (options_.strict) return Fail(p, "UTF-8 before it");
    scratch_ = ToUtf8(*text);
    *text = scratch_;
  }
  *text = doc_.arena_.Keep(*text);
  return p + 1;
}

const char* JsonParser::Escape(const char* p) {
  if (p == end_) return Fail(p, "an escape");
  static constexpr char kFrom[] = "\"\\/bfnrt", kTo[] = "\"\\/\b\f\n\r\t";
  if (const void* found = std::memchr(kFrom, *p, sizeof kFrom - 1)) {
    scratch_ += kTo[static_cast<const char*>(found) - kFrom];
    return p + 1;
  }
  if (*p != 'u') return Fail(p, "an escape");
  unsigned code = 0, low = 0;
  p = Hex4(p + 1, &code);
  if (p == nullptr) return nullptr;
  if (code >= 0xD800 && code < 0xDC00 && end_ - p >= 6 && p[0] == '\\' && p[1] == 'u') {
    const char* after = Hex4(p + 2, &low);
    if (after == nullptr) return nullptr;
    if (low >= 0xDC00 && low < 0xE000) {
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
      p = after;
    }
  }
  // Half a surrogate pair is not a character.
  const bool half = code >= 0xD800 && code < 0xE000;
  if (half && options_.strict) return Fail(p, "the other half of a surrogate pair");
  AppendUtf8(scratch_, half ? 0xFFFD : code);
  return p;
}

const char* JsonParser::Hex4(const char* p, unsigned* code) {
  if (end_ - p < 4) return Fail(p, "four hexadecimal digits");
  const auto r = std::from_chars(p, p + 4, *code, 16);
  return r.ptr == p + 4 ? r.ptr : Fail(p, "four hexadecimal digits");
}

Status ParseJson(std::string_view text, std::string_view what, JsonDoc* doc, uint64_t base, JsonOptions options) {
  doc->Clear();
  if (text.substr(0, 3) == "\xEF\xBB\xBF" && !options.strict) {
    text.remove_prefix(3);
    base += 3;
  }
  if (text.size() > kMaxJsonBytes) {
    return BadInput(
        Msg("{} at byte {} is {} bytes long: nothing in a dump is longer than {}, check where the file comes from",
            what, base, text.size(), kMaxJsonBytes));
  }
  if (text.empty()) text = "";  // not null, which the parser takes for an error
  JsonParser parser(text, options, doc);
  if (parser.Run()) return OkStatus();
  const size_t at = parser.position();
  return BadInput(Msg("{} is not valid JSON at byte {}: expected {} but found {}, restore the file or dump again", what,
                      base + at, KnownText(parser.expected()),
                      at < text.size() ? ShownByte(text[at]) : KnownText("the end")));
}

Message ShownByte(char c) {
  static constexpr char kHex[] = "0123456789abcdef";
  const auto u = static_cast<unsigned char>(c);
  if (u >= 0x20 && u < 0x7F) return Message(std::string("'") + c + "'");
  return Message(std::string("byte 0x") + kHex[u >> 4] + kHex[u & 15]);
}

}  // namespace msprobe
