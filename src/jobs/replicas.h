// Ranks that hold what another rank of their step holds: most of a data parallel run.
#pragma once

#include <vector>

#include "match/path_plan.h"

namespace msprobe {

struct Replicas {
  /// For each pair the one that is compared for it: the first of its step whose files, of both runs, have the same
  /// bytes.
  std::vector<size_t> of;
  /// Pairs whose two dumps have the same bytes.
  std::vector<bool> equal;
};

/// Recordings that are not whole, or that have files of tensors, stand for themselves.
StatusOr<Replicas> FindReplicas(const std::vector<FilePair>& pairs);

}  // namespace msprobe
