#include "view/values/layer_finder.h"

#include <algorithm>
#include <utility>

#include "match/modules/layer_place.h"
#include "ops/op_name.h"

namespace msprobe::view {
namespace {

// "model.norm" of "Module.model.norm.RMSNorm.forward.0"; "" of what is not a module.
std::string_view ModulePath(std::string_view name) {
  std::string_view base = ParseOpName(name).base;
  const size_t dot = base.find('.');
  if (base.substr(0, dot) != "Module" && base.substr(0, dot) != "Cell") return {};
  base.remove_prefix(std::min(dot + 1, base.size()));
  const size_t type = base.rfind('.');
  return type == std::string_view::npos ? base : base.substr(0, type);
}

// What has no number of its own: a module, what a module calls beside its layers, or what is called outside of modules.
std::string PlainLabel(std::string_view name, std::string_view parent) {
  if (const std::string_view path = ModulePath(name); !path.empty()) return std::string(path);
  if (const std::string_view path = ModulePath(parent); !path.empty()) return std::string(path) + ".*";
  const size_t dot = name.find('.');
  return name.find("Apis_Between_Modules") == 0 || dot == std::string_view::npos ? std::string(name.substr(0, dot))
                                                                                 : "*";
}

std::string LayerLabel(const LayerPlace& place) {
  std::string_view stack = place.stack;
  const size_t dot = stack.find('.');
  if (dot != std::string_view::npos) stack.remove_prefix(dot + 1);
  return std::string(stack) + "." + std::to_string(place.layer);
}

}  // namespace

bool RunsBackward(const Tree& tree, uint32_t node) {
  const auto backward = [&](uint32_t i) {
    const OpDirection direction = ParseOpName(tree.Name(i)).direction;
    return direction == OpDirection::kBackward || direction == OpDirection::kParameterGrad;
  };
  if (backward(node) || tree.Type(node) == kModule) return backward(node);
  // An all_reduce of gradients is a forward call by its name. What is computed again for them stands in a forward
  // module.
  for (uint32_t up = tree.Parent(node); up != kNoNode; up = tree.Parent(up)) {
    if (tree.Type(up) == kModule) return backward(up);
  }
  return false;
}

LayerFinder::LayerFinder(const Tree& tree)
    : tree_(tree), columns_of_(tree.size(), kUnknown), mixed_(tree.size()), in_layer_(tree.size()) {
  for (uint32_t i = 0; i < tree.size(); ++i) in_layer_[i] = PlaceOfModule(tree.Name(i)).layer >= 0;
  for (uint32_t i = 0; i < tree.size(); ++i) {
    if (!in_layer_[i]) continue;
    // A module that is in a layer itself does not hold layers, whatever is below it.
    for (uint32_t up = tree.Parent(i); up != kNoNode && !mixed_[up]; up = tree.Parent(up)) {
      if (in_layer_[up]) break;
      mixed_[up] = true;
    }
  }
}

uint32_t LayerFinder::ColumnOf(uint32_t node) {
  std::vector<uint32_t> way;
  uint32_t found = kUnknown;
  for (uint32_t i = node; found == kUnknown; i = tree_.Parent(i)) {
    if (columns_of_[i] != kUnknown) {
      found = columns_of_[i];
      break;
    }
    way.push_back(i);
    const uint32_t up = tree_.Parent(i);
    if (in_layer_[i]) {
      found = Column(LayerLabel(PlaceOfModule(tree_.Name(i))));
    } else if (mixed_[i] || up == kNoNode) {
      found = kNoNode;  // holds layers itself
    } else if (mixed_[up] || tree_.Parent(up) == kNoNode) {
      found = Column(PlainLabel(tree_.Name(i), tree_.Name(up)));
    }
  }
  for (const uint32_t i : way) columns_of_[i] = found;
  return found;
}

uint32_t LayerFinder::Column(std::string label) {
  const auto [at, is_new] = by_label_.try_emplace(label, static_cast<uint32_t>(labels_.size()));
  if (!is_new) return at->second;
  if (labels_.size() >= kMostLayers) return at->second = kNoNode;
  labels_.push_back(std::move(label));
  return at->second;
}

}  // namespace msprobe::view
