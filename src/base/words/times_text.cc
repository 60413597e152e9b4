#include "base/words/times_text.h"

#include <fmt/format.h>

#include <cstdlib>

namespace msprobe {

std::string TimesText(double times, int digits) {
  constexpr double kLongest = 1e7;  // beyond, nobody counts the zeros
  const std::string rounded = fmt::format("{:.{}g}", times, digits);
  const double shown = std::strtod(rounded.c_str(), nullptr);
  const bool has_power = rounded.find('e') != std::string::npos;  // "9e+02", too
  if (!((shown >= 1000 || (shown >= 1 && has_power)) && shown < kLongest)) return rounded;
  std::string out = fmt::format("{:.0f}", shown);
  for (size_t at = out.size(); at > 3; at -= 3) out.insert(at - 3, ",");
  return out;
}

}  // namespace msprobe
