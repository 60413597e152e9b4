// Which layer of the model a node belongs to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "view/file/tree.h"

namespace msprobe::view {

inline constexpr size_t kMostLayers = 2000;  ///< further ones are left out

/// Whether a node runs in the backward pass: by its name, gradients too, or as a call that a module makes in its own.
bool RunsBackward(const Tree& tree, uint32_t node);

/// Columns come in the order in which they are first asked for. What stands in no layer is put together by the module
/// that holds it.
class LayerFinder {
 public:
  explicit LayerFinder(const Tree& tree);
  /// kNoNode: shown in no column.
  uint32_t ColumnOf(uint32_t node);
  /// "model.layers.3", "lm_head"; at most kMostLayers.
  const std::vector<std::string>& labels() const { return labels_; }

 private:
  static constexpr uint32_t kUnknown = kNoNode - 1;
  uint32_t Column(std::string label);

  const Tree& tree_;
  std::vector<uint32_t> columns_of_;
  std::vector<bool> mixed_;     // has a layer below it
  std::vector<bool> in_layer_;  // by its own name
  std::unordered_map<std::string, uint32_t> by_label_;
  std::vector<std::string> labels_;
};

}  // namespace msprobe::view
