// One step of an optimizer in float64.
#pragma once

#include <array>
#include <vector>

#include "optimizer/update_rule.h"
#include "optimizer/weight_values.h"

namespace msprobe {

/// What the rule makes of recorded numbers. The weight follows from the states as they were recorded after the step, so
/// that a wrong state does not hide, or cause, a wrong weight.
struct UpdatedWeight {
  std::vector<double> weight, change;  // after the step; how far the optimizer's own term moves it, without rounding
  std::vector<double> sizes;           // of `change` if none of its terms cancelled: what rounding is relative to
  std::array<std::vector<double>, kStateRoles> states;      // empty: not of this rule, or not recorded
  std::array<std::vector<double>, kStateRoles> magnitudes;  // sums of the absolute terms: what rounding is relative to
  bool computed = false;                                    // false: the record lacks what the rule needs
  double noise = 0;                                         // of `change`, relative, beyond that of single operations
};

UpdatedWeight ApplyRule(const UpdateRule& rule, const WeightValues& values);

/// Needs all elements of a weight at once.
inline bool NeedsWhole(OptimizerKind kind) { return kind == OptimizerKind::kAdafactor || kind == OptimizerKind::kMuon; }

/// Those of Adafactor and Muon, which apply to whole matrices.
void ApplyAdafactor(const UpdateRule& rule, const WeightValues& values, UpdatedWeight* out);
void ApplyMuon(const UpdateRule& rule, const WeightValues& values, UpdatedWeight* out);

}  // namespace msprobe
