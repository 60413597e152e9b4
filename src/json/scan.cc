#include "json/scan.h"

#include <algorithm>
#include <bit>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace msprobe {
namespace {

/// Bit i of each mask belongs to byte i of a 64-byte block.
struct Masks {
  uint64_t quote = 0, backslash = 0, open = 0, close = 0;
};

// '[' and '{', like ']' and '}', differ in bit 0x20 alone, so one comparison finds both kinds.
#if defined(__SSE2__)
Masks Classify(const char* p) {
  const __m128i quote = _mm_set1_epi8('"'), slash = _mm_set1_epi8('\\'), bit = _mm_set1_epi8(0x20);
  const __m128i open = _mm_set1_epi8('{'), close = _mm_set1_epi8('}');
  Masks m;
  for (int k = 0; k < 4; ++k) {
    const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 16 * k));
    const __m128i folded = _mm_or_si128(v, bit);
    const auto mask = [&](__m128i hit) { return static_cast<uint64_t>(_mm_movemask_epi8(hit)) << (16 * k); };
    m.quote |= mask(_mm_cmpeq_epi8(v, quote));
    m.backslash |= mask(_mm_cmpeq_epi8(v, slash));
    m.open |= mask(_mm_cmpeq_epi8(folded, open));
    m.close |= mask(_mm_cmpeq_epi8(folded, close));
  }
  return m;
}
#elif defined(__aarch64__)
uint64_t MoveMask(uint8x16_t a, uint8x16_t b, uint8x16_t c, uint8x16_t d) {
  const uint8x16_t bits = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
  uint8x16_t ab = vpaddq_u8(vandq_u8(a, bits), vandq_u8(b, bits));
  uint8x16_t cd = vpaddq_u8(vandq_u8(c, bits), vandq_u8(d, bits));
  ab = vpaddq_u8(ab, cd);
  return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(ab, ab)), 0);
}
Masks Classify(const char* p) {
  uint8x16_t v[4], f[4];
  for (int k = 0; k < 4; ++k) {
    v[k] = vld1q_u8(reinterpret_cast<const uint8_t*>(p) + 16 * k);
    f[k] = vorrq_u8(v[k], vdupq_n_u8(0x20));
  }
  const auto find = [](const uint8x16_t* x, char c) {
    const uint8x16_t w = vdupq_n_u8(static_cast<uint8_t>(c));
    return MoveMask(vceqq_u8(x[0], w), vceqq_u8(x[1], w), vceqq_u8(x[2], w), vceqq_u8(x[3], w));
  };
  return {find(v, '"'), find(v, '\\'), find(f, '{'), find(f, '}')};
}
#else
Masks Classify(const char* p) {
  Masks m;
  for (int i = 0; i < 64; ++i) {
    const uint64_t bit = uint64_t{1} << i;
    const char c = p[i], f = static_cast<char>(c | 0x20);
    if (c == '"') m.quote |= bit;
    if (c == '\\') m.backslash |= bit;
    if (f == '{') m.open |= bit;
    if (f == '}') m.close |= bit;
  }
  return m;
}
#endif

/// Follows strings from block to block.
class StringTracker {
 public:
  /// Bits of the block that lie inside strings (opening quote included).
  uint64_t Inside(const Masks& m) {
    uint64_t quote = m.quote & ~Escaped(m.backslash);
    quote ^= quote << 1;
    quote ^= quote << 2;
    quote ^= quote << 4;
    quote ^= quote << 8;
    quote ^= quote << 16;
    quote ^= quote << 32;
    const uint64_t inside = quote ^ carry_;
    carry_ = static_cast<uint64_t>(static_cast<int64_t>(inside) >> 63);
    return inside;
  }

 private:
  /// Bits of the characters that a backslash escapes. Backslashes are rare in dumps, so the loop seldom runs.
  uint64_t Escaped(uint64_t backslash) {
    uint64_t escaped = escape_next_ ? 1 : 0;
    escape_next_ = false;
    backslash &= ~escaped;
    while (backslash) {
      const int i = std::countr_zero(backslash);
      if (i == 63) {
        escape_next_ = true;
        break;
      }
      escaped |= uint64_t{1} << (i + 1);
      backslash &= ~(uint64_t{3} << i);
    }
    return escaped;
  }
  uint64_t carry_ = 0;
  bool escape_next_ = false;
};

/// Walks the brackets from `pos` on. With `stop_at_zero` it ends behind the bracket that brings the depth back to 0.
size_t Walk(std::string_view text, size_t pos, bool stop_at_zero, uint64_t* deepest) {
  StringTracker strings;
  int64_t depth = 0, most = 0;
  char tail[64];
  for (size_t at = pos; at < text.size(); at += 64) {
    const char* block = text.data() + at;
    if (text.size() - at < 64) {
      std::memset(tail, ' ', sizeof tail);
      std::memcpy(tail, block, text.size() - at);
      block = tail;
    }
    const Masks m = Classify(block);
    const uint64_t outside = ~strings.Inside(m);
    const uint64_t open = m.open & outside;
    uint64_t brackets = open | (m.close & outside);
    for (; brackets; brackets &= brackets - 1) {
      const int i = std::countr_zero(brackets);
      if ((open >> i) & 1) {
        most = std::max(most, ++depth);
      } else if (--depth <= 0 && stop_at_zero) {
        if (deepest) *deepest = static_cast<uint64_t>(most);
        return at + static_cast<size_t>(i) + 1;
      }
    }
  }
  if (deepest) *deepest = static_cast<uint64_t>(most);
  return stop_at_zero ? kNoEnd : text.size();
}

}  // namespace

size_t SkipSpace(std::string_view text, size_t pos) {
  while (pos < text.size() && (text[pos] == ' ' || text[pos] == '\n' || text[pos] == '\r' || text[pos] == '\t')) ++pos;
  return pos;
}

size_t FindStringEnd(std::string_view text, size_t pos, bool* escaped) {
  *escaped = false;
  // The quote is looked for again only when it turned out to be escaped: a string full of backslashes stays linear.
  for (size_t quote = text.find('"', pos);;) {
    const std::string_view part = text.substr(pos, quote == std::string_view::npos ? quote : quote - pos);
    const size_t slash = part.find('\\');
    if (slash == std::string_view::npos) return quote == std::string_view::npos ? kNoEnd : quote;
    *escaped = true;
    pos += slash + 2;
    if (pos > text.size()) return kNoEnd;
    if (quote != std::string_view::npos && pos > quote) quote = text.find('"', pos);
  }
}

size_t FindContainerEnd(std::string_view text, size_t pos, uint64_t* deepest) { return Walk(text, pos, true, deepest); }

uint64_t NestingDepth(std::string_view text) {
  uint64_t deepest = 0;
  Walk(text, 0, false, &deepest);
  return deepest;
}

}  // namespace msprobe
