// By which name a function takes what dumps have by its place.
#pragma once

#include <string_view>

namespace msprobe {

/// "num_groups" of ".input.1" of a function of PyTorch (ApiOf); "" for what is given by its name, and where the name is
/// not known or tells nothing, as that of the tensor that is worked on.
std::string_view ArgumentName(std::string_view function, std::string_view item);

}  // namespace msprobe
