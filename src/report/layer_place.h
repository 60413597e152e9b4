// Where in a stack of like layers an op stands: the depth of the error curves.
#pragma once

#include <string_view>
#include <unordered_map>

#include "dump/reader.h"

namespace msprobe {

/// "Module.model.layers.1.mlp.down_proj.Linear.forward.0" is in layer 1 of "Module.model.layers", part "mlp.down_proj".
struct LayerPlace {
  std::string_view stack, part;  // the part is "" for the layer itself
  int layer = -1;                // -1: in no layer
};

/// Of a module's name; no place for other ops. The number behind "layers", "blocks", "h" and their like counts, or the
/// first number of a path that has none of them.
LayerPlace PlaceOfModule(std::string_view op_name);

/// Places of APIs, too: that of the module which calls them.
class LayerPlaces {
 public:
  /// Points into `construct`.
  explicit LayerPlaces(const ConstructFile& construct);
  LayerPlace Of(std::string_view op_name) const;

 private:
  std::unordered_map<std::string_view, std::string_view> parents_;
};

}  // namespace msprobe
