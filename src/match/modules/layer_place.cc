#include "match/modules/layer_place.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/text.h"
#include "ops/op_name.h"

namespace msprobe {
namespace {

constexpr std::array<std::string_view, 9> kStackNames{"layers", "layer", "blocks",         "block",         "h",
                                                      "stages", "units", "encoder_layers", "decoder_layers"};
constexpr int kMostSteps = 64;  // from an API to its module; a loop in construct.json ends there
constexpr size_t kMostDigits = 5;

bool IsLayerNumber(std::string_view part) { return part.size() <= kMostDigits && IsDigits(part); }

}  // namespace

LayerPlace PlaceOfModule(std::string_view op_name) {
  if (!IsModuleName(op_name)) return {};
  const std::string_view base = ParseOpName(op_name).base;
  const std::string_view path = base.substr(0, std::max(base.rfind('.'), base.find('.')));  // without the class
  LayerPlace found;
  std::string_view before;
  for (size_t at = 0, part = 0; at < path.size(); ++part) {
    const size_t end = std::min(path.find('.', at), path.size());
    const std::string_view name = path.substr(at, end - at);
    const bool known = std::find(kStackNames.begin(), kStackNames.end(), before) != kStackNames.end();
    if (IsLayerNumber(name) && (known || (found.layer < 0 && part > 1))) {
      (void)std::from_chars(name.data(), name.data() + name.size(), found.layer);
      found.stack = path.substr(0, at - 1);
      found.part = path.substr(std::min(end + 1, path.size()));
      if (known) return found;
    }
    before = name;
    at = end + 1;
  }
  return found;
}

LayerPlace LayerPlaces::Of(std::string_view op_name) const {
  for (int step = 0; step < kMostSteps; ++step) {
    if (const LayerPlace place = PlaceOfModule(op_name); place.layer >= 0) return place;
    const std::string_view parent = parents_ ? parents_->ParentOf(op_name) : std::string_view();
    if (parent.empty()) break;
    op_name = parent;
  }
  return {};
}

}  // namespace msprobe
