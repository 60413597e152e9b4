// What functions of PyTorch take for an argument that a call does not give.
#pragma once

#include <string_view>

namespace msprobe {

struct DefaultArgument {
  std::string_view function, name, value;  // "scaled_dot_product_attention", "dropout_p", "0.0"
  int place = -1;                          // among the arguments; -1: it is given by its name only
};

/// Of an item of a call, ".input.4" or ".input.dropout_p", of a function (ApiOf); null where it has no default that is
/// known.
const DefaultArgument* FindDefaultArgument(std::string_view function, std::string_view item);

/// Whether a value, as dumps show it, is that of the default: 0 is 0.0.
bool IsDefaultValue(const DefaultArgument& argument, std::string_view value);

}  // namespace msprobe
