// In which order the nodes that a search finds are listed.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "view/file/tree.h"

namespace msprobe::view {

enum class HitSort : uint8_t {
  kExecution,
  kError,   ///< the largest first; what has none comes last
  kModule,  ///< what belongs to a module stands together, forward and backward; modules in the order of execution
};

/// "" is kExecution; nullopt for what is no order.
std::optional<HitSort> ParseHitSort(std::string_view word);

/// A total order of the nodes of a side: those that are alike keep the order of execution.
class HitOrder {
 public:
  /// `errors`: one entry a node, NaN where there is none; null: there are none.
  HitOrder(const Tree& tree, HitSort sort, const std::vector<double>* errors);
  bool operator()(uint32_t a, uint32_t b) const {
    return keys_.empty() || keys_[a] == keys_[b] ? a < b : keys_[a] < keys_[b];
  }
  bool is_execution() const { return keys_.empty(); }

 private:
  std::vector<double> keys_;  // by node; empty: the order of execution
};

}  // namespace msprobe::view
