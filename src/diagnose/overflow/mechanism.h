// Why an op gives NaN or infinities although what it is given is finite, where the recorded figures prove it.
#pragma once

#include <span>
#include <string_view>

#include "base/message.h"
#include "dump/flatten.h"

namespace msprobe {

/// One sentence: "it takes the logarithm of zero: input.0 has Min 0". Empty where the figures do not prove a mechanism.
/// `items` are those of the op; `forward` those of the forward call of a backward op, empty where it was not recorded.
Message MechanismOf(std::string_view op, std::span<const Item> items, std::span<const Item> forward);

}  // namespace msprobe
