// How far paired weights are apart, read once, in parallel, in little memory.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "weights/checkpoint.h"
#include "weights/weight_pair.h"

namespace msprobe {

enum class WeightVerdict : uint8_t {
  kBitEqual,
  kEqual,     ///< the same values in different types, or zeros of different sign
  kRounded,   ///< one side is the other rounded to its type
  kRoundOff,  ///< apart by no more than the ruler allows the type
  kDiffers,
  kNotNumbers,  ///< NaN or infinities at different places
  kShape,       ///< different shapes: not compared
};
std::string_view WeightVerdictText(WeightVerdict v);
/// True for what two copies of the same weights do not show.
inline bool IsDifferent(WeightVerdict v) { return v >= WeightVerdict::kDiffers; }

/// An element, where it lies on both sides.
struct WeightPlace {
  std::vector<int64_t> a, b;  // index in the whole tensors of the checkpoints
  int file_a = 0, file_b = 0;
  double value_a = 0, value_b = 0;
  std::string part;  // "q", "gate", ...; else empty
};

struct WeightDiff {
  WeightVerdict verdict = WeightVerdict::kBitEqual;
  int64_t count = 0, equal = 0;  // elements, and those of the same value
  double l2 = 0;                 // norm of the difference
  std::optional<double> cosine;  // none where one side is all zeros
  double max_abs = 0, max_rel = 0;
  double max_ulp = 0;    // in units in the last place of the coarser type
  double tolerance = 0;  // the least t with |a - b| <= t + t * |b| for all elements
  double norm_a = 0, norm_b = 0;
  double error = 0;    // relative, as the ruler measures: the larger of ||a-b|| / ||.|| and max|a-b| / max|.|
  double allowed = 0;  // by the ruler, for the coarser type
  std::optional<WeightPlace> first, worst;  // elements that differ
  /// It lies, in part, in the only file of A of which nothing is bit-equal, while all else is: no rounding does that.
  std::optional<int> file_alone;
};

/// One for each pair, in their order.
StatusOr<std::vector<WeightDiff>> CompareWeights(const Checkpoint& a, const Checkpoint& b,
                                                 const std::vector<WeightPair>& pairs);

}  // namespace msprobe
