#include "curves/number_text.h"

#include <charconv>
#include <cmath>

namespace msprobe {
namespace {

bool IsWordByte(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/// What a one in the last digit of "-12.50e-3" is worth.
double LastDigit(std::string_view text) {
  const size_t e = text.find_first_of("eE");
  const std::string_view mantissa = text.substr(0, e);
  const size_t point = mantissa.find('.');
  int exponent = 0;
  if (e != std::string_view::npos) {
    std::string_view digits = text.substr(e + 1);
    if (!digits.empty() && digits[0] == '+') digits.remove_prefix(1);
    if (std::from_chars(digits.data(), digits.data() + digits.size(), exponent).ec != std::errc()) exponent = 0;
  }
  if (point != std::string_view::npos) exponent -= static_cast<int>(mantissa.size() - point - 1);
  return std::pow(10.0, exponent);
}

}  // namespace

std::optional<NumberText> ReadNumberText(std::string_view text) {
  NumberText out;
  size_t begin = 0;
  if (!text.empty() && text[0] == '+') begin = 1;
  const char *from = text.data() + begin, *to = text.data() + text.size();
  const auto read = std::from_chars(from, to, out.value);
  if (read.ec == std::errc::result_out_of_range) {
    out.value = 0;  // too small or too large for a double: neither is a loss that anyone compares
  } else if (read.ec != std::errc()) {
    return std::nullopt;
  }
  out.size = static_cast<size_t>(read.ptr - text.data());
  if (read.ptr != to && IsWordByte(*read.ptr)) return std::nullopt;
  if (std::isfinite(out.value)) out.unit = LastDigit({from, static_cast<size_t>(read.ptr - from)});
  return out;
}

size_t SkipToValue(std::string_view text) {
  size_t at = 0;
  const auto blanks = [&] {
    while (at < text.size() && (text[at] == ' ' || text[at] == '\t')) ++at;
  };
  for (int depth = 0; depth < 3; ++depth) {
    blanks();
    bool found = false;
    for (const std::string_view opening : {"np.float64(", "np.float32(", "tensor(", "Tensor(", "[", "(", "'", "\""}) {
      if (text.substr(at).starts_with(opening)) {
        at += opening.size();
        found = true;
        break;
      }
    }
    if (!found) break;
  }
  blanks();
  return at;
}

}  // namespace msprobe
