// Values as Python prints them, in logs.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "config/value.h"

namespace msprobe {

/// A dict, list, tuple, text, number, True, False or None at the beginning of `text`, over several lines too; `end` is
/// behind it. Other things (a class, a call) become the text that they are. kBadInput for what does not end, with
/// `what` and the byte.
StatusOr<ConfigValue> ParsePythonLiteral(std::string_view text, const std::string& what, size_t* end);

/// Name(a=1, b=[..]) as a map; `text` begins behind the bracket.
StatusOr<ConfigValue> ParsePythonArguments(std::string_view text, const std::string& what, size_t* end);

}  // namespace msprobe
