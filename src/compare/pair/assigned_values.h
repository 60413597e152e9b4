// Values that are put into a tensor: x[...] = value.
#pragma once

#include <optional>
#include <string>

#include "compare/pair/dump_pair.h"

namespace msprobe {

/// The first assignment close in front of `op` into a tensor of the shape of an input of `op` that differs, to which
/// the runs give different values; the tensor itself, as it was before, agrees. Results of assignments are not
/// recorded.
struct Assignment {
  size_t op = 0;
  std::string item;  // the value
};
StatusOr<std::optional<Assignment>> AssignedBefore(const DumpPair& pair, const MatchPlan& plan, size_t op);

}  // namespace msprobe
