// What a weight is in its model, whatever it is called: "layer 3 attention q weight".
#pragma once

#include <string>
#include <vector>

#include "weights/checkpoint.h"

namespace msprobe {

/// A tensor, or a part of one, and what it is. Parts are as they lie in fused tensors: q, k and v of each group of
/// heads, the halves of a gated layer, experts one by one. Weights of Conv1D are transposed.
struct RoleTensor {
  std::string role;
  WeightTensor tensor;
  bool norm = false;   // the scale of a normalisation
  bool table = false;  // rows are words: padding may follow them
  size_t source = 0;   // of Checkpoint::tensors
};

/// Roles of all tensors, in their order; names that say nothing are their own roles.
std::vector<RoleTensor> RolesOf(const Checkpoint& checkpoint);

/// The part of tensor `source` to which the element at `place` belongs: "q", "gate", ...; "" where it has no parts.
std::string PartAt(const Checkpoint& checkpoint, size_t source, const std::vector<int64_t>& place);

}  // namespace msprobe
