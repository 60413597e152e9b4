// What follows from a graph and is asked for again and again: found once.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "view/query/answers.h"
#include "view/query/execution.h"
#include "view/values/activations.h"
#include "view/values/node_dtypes.h"

namespace msprobe::view {

struct GraphMemo {
  std::mutex execution_mutex, layers_mutex, summary_mutex, activations_mutex, errors_mutex;  // nobody waits
  std::array<std::shared_ptr<const Execution>, 2> execution;                                 // of NPU and Bench
  std::optional<std::vector<LayerColumn>> layers;
  std::optional<GraphCounts> summary;
  std::optional<Activations> activations;
  std::shared_ptr<const std::vector<double>> errors;  // of the target; node_errors.h
  std::array<DTypesOfSide, 2> dtypes;                 // of target and golden side
};

}  // namespace msprobe::view
