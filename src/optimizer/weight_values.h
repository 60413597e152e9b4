// The numbers of a recorded weight in float64.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "optimizer/optimizer_record.h"
#include "tensor/kernels/finfo.h"

namespace msprobe {

/// What a state is for, whatever an implementation calls it.
enum class StateRole : uint8_t { kFirst, kSecond, kMaximum, kRow, kColumn };
inline constexpr size_t kStateRoles = 5;

struct StateValues {
  bool recorded = false;  // after the step
  bool had_before = false;
  DType dtype = DType::kFloat32;
  std::vector<double> before, after;
};

/// Elements of a weight: a stretch, or all of it.
struct WeightValues {
  DType dtype = DType::kFloat32, coarsest = DType::kFloat32;    // of the weight; of all that goes into the update
  std::vector<int64_t> shape;                                   // of the whole weight
  double steps = 1, steps_at_weights = 1, steps_at_groups = 1;  // if one count is counted at each weight or group
  std::vector<double> before, after, grad;
  std::vector<double> copy;  // a state that is the weight in a finer type and did not change; empty without one
  std::array<StateValues, kStateRoles> states;

  const StateValues& of(StateRole role) const { return states[static_cast<size_t>(role)]; }
};

int64_t ElementsOf(const RecordedWeight& weight);

/// Elements [begin, end) of the weight. States of another shape (rows and columns) are whole. `steps` is what counts
/// where the optimizer keeps no count.
WeightValues LoadValues(const RecordedWeight& weight, int64_t begin, int64_t end, double steps);

/// Bits of the fraction: 23 for float32, 7 for bfloat16.
int FractionBits(DType dtype);

}  // namespace msprobe
