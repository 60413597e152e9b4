// Numbers as logs print them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace msprobe {

struct NumberText {
  double value = 0;
  double unit = 0;  // of the last digit
  size_t size = 0;  // characters
};

/// The number at the beginning of `text`; none where there is none, or a letter follows it.
std::optional<NumberText> ReadNumberText(std::string_view text);

/// Where a value begins: behind blanks and what Python writes around numbers ("np.float64(", "tensor(", "[", quotes).
size_t SkipToValue(std::string_view text);

}  // namespace msprobe
