// Numbers of layers and experts in the names of modules.
#pragma once

#include <string_view>

namespace msprobe {

/// The number that makes a module one of several layers or experts: "a.layers.3.B.forward.0" -> prefix "a.layers.".
/// Nothing when the number belongs to `parent` already.
struct LayerNumber {
  std::string_view prefix, rest;  // rest begins behind the number
  int number = 0;
};
bool FindLayerNumber(std::string_view name, std::string_view parent, LayerNumber* out);
bool FindExpertNumber(std::string_view name, std::string_view parent, LayerNumber* out);

}  // namespace msprobe
