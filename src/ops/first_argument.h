// Whether an op reads the tensor that it is given first.
#pragma once

#include <cstdint>
#include <string_view>

namespace msprobe {

enum class FirstArgument : uint8_t {
  kRead,
  kReplaced,          // "copy_", "zero_": whatever is in it is written over
  kReadUnlessNoBeta,  // "baddbmm": not where `beta` is 0, NaN in it included
};

/// Of "copy_", "baddbmm"; modules read what they are given.
FirstArgument FirstArgumentOf(std::string_view api);

}  // namespace msprobe
