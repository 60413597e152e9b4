// Numbers of dumps as people read them.
#pragma once

#include <array>
#include <charconv>
#include <string>
#include <string_view>

namespace msprobe {

/// Six digits of a number that has a fraction; everything else, integers included, as it is.
inline std::string SixDigits(std::string_view number) {
  double v = 0;
  const char* const stop = number.data() + number.size();
  const auto [end, error] = std::from_chars(number.data(), stop, v);
  if (error != std::errc() || end != stop || number.find('.') == std::string_view::npos) return std::string(number);
  std::array<char, 32> out{};
  return {out.data(), std::to_chars(out.data(), out.data() + out.size(), v, std::chars_format::general, 6).ptr};
}

}  // namespace msprobe
