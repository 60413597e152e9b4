// Where in a stack of like layers an op stands: the depth of the error curves.
#pragma once

#include <memory>
#include <string_view>
#include <utility>

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
  /// `parents` may be null: then only modules have places.
  explicit LayerPlaces(std::shared_ptr<const ParentIndex> parents) : parents_(std::move(parents)) {}
  LayerPlace Of(std::string_view op_name) const;

 private:
  std::shared_ptr<const ParentIndex> parents_;
};

}  // namespace msprobe
