// The parts of a tensor on N ranks against the whole tensor of a reference.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "parity/place.h"

namespace msprobe {

/// A tensor of the reference, and the same with one more rounding everywhere: what rounding alone makes of it.
struct WholeValues {
  std::vector<int64_t> shape;
  DType dtype = DType::kFloat32;
  std::vector<double> values, rounded;  // `rounded` may be empty: the unit of the type counts alone
};

WholeValues WholeOf(const ParityEntry& reference, const ParityEntry* rounded);

enum class PartsKind : uint8_t {
  kBitEqual,
  kEqual,  ///< up to rounding
  kSum,    ///< each rank has a summand, and they add up
  kDiffers,
  kNotCompared,  ///< sizes that no mapping explains, or nothing to compare
};

struct PartsComparison {
  PartsKind kind = PartsKind::kNotCompared;
  RankMapping mapping;
  std::vector<std::vector<double>> expected;  // of each part
  std::vector<double> errors, bounds;         // relative, of each part
  std::vector<double> scales;                 // by which each part was divided before
  std::optional<size_t> farthest() const;     // of the parts beyond their bounds, if there are any
  double worst() const;                       // its error
  double bound() const;
  std::vector<size_t> bad() const;
};

/// Each part divided by its scale; without scales each part may have a factor of its own, which is then in `scales`.
PartsComparison ComparePartsWith(const RankParts& parts, const WholeValues& whole,
                                 const std::optional<std::vector<double>>& scales);
PartsComparison CompareParts(const RankParts& parts, const WholeValues& whole);

/// Root of the sum of squares of the difference over that of `golden`; infinite where only one is zero or NaN.
double RelativeError(const std::vector<double>& target, const std::vector<double>& golden);
double Dot(const std::vector<double>& a, const std::vector<double>& b);
double SumOfSquares(const std::vector<double>& values);
/// f of target = f * golden, if nothing else than rounding by `bound` remains.
std::optional<double> FactorBetween(const std::vector<double>& target, const std::vector<double>& golden, double bound);

/// How far two computations of these elements may be apart: what one more rounding moves them, or some units of their
/// type.
double BoundOf(const std::vector<double>& golden, const std::vector<double>& rounded, DType dtype);

}  // namespace msprobe
