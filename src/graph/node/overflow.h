// How bad the infinities and NaNs in one op of a dump are.
#pragma once

#include <string_view>

#include "json/value.h"

namespace msprobe {

enum class Overflow : uint8_t { kNone, kMedium, kHigh, kCritical };
std::string_view OverflowName(Overflow level);  // "" for kNone

/// critical: clean inputs give a bad output; high: bad in, bad out, or the norm grows more than a hundredfold; medium:
/// bad in, clean out. Bad means infinite or NaN in Max, Min or Mean. Buffers that the op overwrites do not count.
Overflow ClassifyOverflow(std::string_view name, const JsonValue& op);

}  // namespace msprobe
