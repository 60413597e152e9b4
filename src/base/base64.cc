#include "base/base64.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace msprobe {
namespace {

constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::array<int8_t, 256> kValues = [] {
  std::array<int8_t, 256> out{};
  out.fill(-1);
  for (size_t i = 0; i < kDigits.size(); ++i) out[static_cast<unsigned char>(kDigits[i])] = static_cast<int8_t>(i);
  return out;
}();

}  // namespace

std::string Base64(std::string_view bytes) {
  std::string out((bytes.size() + 2) / 3 * 4, '=');
  char* to = out.data();
  size_t i = 0;
  const auto byte = [&](size_t k) { return uint32_t{static_cast<unsigned char>(bytes[k])}; };
  for (; i + 3 <= bytes.size(); i += 3) {
    const uint32_t v = byte(i) << 16 | byte(i + 1) << 8 | byte(i + 2);
    for (int shift = 18; shift >= 0; shift -= 6) *to++ = kDigits[(v >> shift) & 63];
  }
  const size_t rest = bytes.size() - i;
  if (rest == 0) return out;
  const uint32_t v = byte(i) << 16 | (rest == 2 ? byte(i + 1) << 8 : 0);
  for (size_t k = 0; k <= rest; ++k) *to++ = kDigits[(v >> (18 - 6 * static_cast<int>(k))) & 63];
  return out;
}

bool FromBase64(std::string_view text, std::string* bytes) {
  bytes->clear();
  if (text.size() % 4 != 0) return false;
  const size_t padding = text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0;
  bytes->reserve(text.size() / 4 * 3);
  for (size_t i = 0; i < text.size(); i += 4) {
    const size_t digits = i + 4 == text.size() ? 4 - padding : 4;
    uint32_t v = 0;
    for (size_t k = 0; k < 4; ++k) {
      const int value = k < digits ? kValues[static_cast<unsigned char>(text[i + k])] : 0;
      if (value < 0) return false;
      v = v << 6 | static_cast<uint32_t>(value);
    }
    for (size_t k = 0; k + 1 < digits; ++k) *bytes += static_cast<char>(v >> (16 - 8 * k));
    if ((v & (0xffffffu >> (8 * (digits - 1)))) != 0) return false;
  }
  return true;
}

}  // namespace msprobe
