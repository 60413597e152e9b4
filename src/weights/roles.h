// What a weight is in its model, whatever it is called: "layer 3 attention q weight".
#pragma once

#include <string>
#include <vector>

#include "weights/checkpoint.h"
#include "weights/role_words.h"

namespace msprobe {

/// What the names of a checkpoint say together.
struct RoleStyle {
  bool two_stacks = false;  // encoder and decoder
  bool conv1d = false;      // weights are stored as [in, out]
  bool gated = false;       // "up" is the first linear of a gated layer, where both are fused
  bool has_w3 = false;
  bool thirds = true;  // q, k and v are taken to be as long where the heads are not known
};

/// A tensor, or a part of one, and what it is. Parts are as they lie in fused tensors: q, k and v of each group of
/// heads, the halves of a gated layer, experts one by one. Weights of Conv1D are transposed.
struct RoleTensor {
  std::string role;
  WeightTensor tensor;
  bool norm = false;   // the scale of a normalisation
  bool table = false;  // rows are words: padding may follow them
  size_t source = 0;   // of Checkpoint::tensors
};

/// What the names and shapes of a checkpoint say together of each tensor. The checkpoint must outlive it.
class RolePlan {
 public:
  /// Without `guess`, fused q, k and v stay one where the heads are not known.
  explicit RolePlan(const Checkpoint& checkpoint, bool guess = true);
  /// Adds the parts of `t`, which is tensor `source` or some blocks of it. `shards`: `t` is what one of so many ranks
  /// of tensor parallelism holds, which share the heads; of those of k and v there may be copies.
  void AddParts(const WeightTensor& t, size_t source, int64_t shards, std::vector<RoleTensor>* out) const;
  const WeightName& name(size_t source) const { return names_[source]; }
  /// Number `expert` of tensor `source` is this one of the whole model.
  void RenumberExperts(size_t source, int64_t first) { first_expert_[source] = first; }

 private:
  const Checkpoint& checkpoint_;
  std::vector<WeightName> names_;
  std::vector<int64_t> first_expert_;
  RoleStyle style_;
};

/// Roles of all tensors, in their order; names that say nothing are their own roles.
std::vector<RoleTensor> RolesOf(const Checkpoint& checkpoint);

/// The part of tensor `source` to which the element at `place` belongs: "q", "gate", ...; "" where it has no parts.
std::string PartAt(const Checkpoint& checkpoint, size_t source, const std::vector<int64_t>& place);

}  // namespace msprobe
