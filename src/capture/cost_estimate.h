// What a step will cost on disk, from one step of task statistics with checksums at level mix: the JSON is counted as
// the writer formats it, tensor files as they are laid out, equal contents of a step once.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace msprobe {

enum class CostTask { kStructure, kStatistics, kMd5, kTensor };
enum class CostLevel { kL0, kL1, kMix };
inline constexpr std::array<std::string_view, 4> kCostTasks{"structure", "statistics", "md5", "tensor"};
inline constexpr std::array<std::string_view, 3> kCostLevels{"L0", "L1", "mix"};

struct StepCost {
  uint64_t ops = 0, files = 0, bytes = 0;
  uint64_t tensors = 0, tensor_bytes = 0;  // of the files and bytes: tensor files, links without bytes of their own
};

struct CostEstimate {
  std::array<std::array<StepCost, 3>, 4> costs;  // [task][level]
  bool exact_links = true;                       // without checksums equal contents are told by their statistics
  std::array<bool, 3> known{true, true, true};   // levels that the step holds
  const StepCost& of(CostTask task, CostLevel level) const {
    return costs[static_cast<size_t>(task)][static_cast<size_t>(level)];
  }
};

/// `rank_dir` holds dump.json, and stack.json and construct.json where they are wanted. kBadInput for a dump without
/// shapes (task structure).
StatusOr<CostEstimate> EstimateCost(const std::string& rank_dir);

}  // namespace msprobe
