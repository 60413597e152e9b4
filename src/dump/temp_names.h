// The names under which files are written before they are put in place.
#pragma once

#include <string_view>

#include "base/text.h"

namespace msprobe {

/// "dump.json.tmp123.0": the name, ".tmp", process and counter.
inline bool IsTempName(std::string_view name) {
  const size_t at = name.rfind(".tmp");
  if (at == std::string_view::npos || at == 0) return false;
  const std::string_view rest = name.substr(at + 4);
  const size_t dot = rest.find('.');
  return dot != std::string_view::npos && IsDigits(rest.substr(0, dot)) && IsDigits(rest.substr(dot + 1));
}

}  // namespace msprobe
