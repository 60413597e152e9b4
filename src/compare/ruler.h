// How far values are apart, in units of what rounding alone explains.
#pragma once

#include "compare/op_diff.h"

namespace msprobe {

/// What a difference is: see docs/en/compare/ruler.md.
enum class RulerVerdict : uint8_t {
  kNone,        // nothing to measure: no partner, or no difference in kind that a number could tell
  kBitEqual,    // nothing differs
  kRoundOff,    // rounding of this op, and of what came before it, explains the difference
  kInherited,   // more than rounding, but no more than the op's inputs brought with them
  kSuspicious,  // more than rounding is expected to give, less than it can give at worst
  kBug,         // more than rounding can give
};
std::string_view RulerVerdictText(RulerVerdict v);

/// Ops of a comparison by verdict; `none` are those without a partner or without values.
struct RulerCounts {
  uint64_t none = 0, bit_equal = 0, round_off = 0, inherited = 0, suspicious = 0, bug = 0;
};

/// Largest relative error of a row's statistics: of Norm against the norm, of the others against the amplitude.
/// Infinity is a difference in kind (NaN, text, shape, checksum); 0 for rows without a partner. In tensor mode that of
/// the values (TensorDiff::error).
double RowError(const OpDiff& op, size_t row, CompareMode mode);

/// Relative error that round-off explains in this op: the largest of its tensors' dtypes, as outputs carry the
/// round-off of their inputs. 1e-5 for float32 and float64, 2e-3 for float16, 1.6e-2 for bfloat16, 0.25 for float8; 0
/// without floating tensors.
double OpTolerance(const OpDiff& op);

/// How far a row is apart in units of `tolerance`, which is that of its op; parameters are judged by their own dtype,
/// integers and texts are equal or infinitely far apart. At most 1 is agreement.
double RowDistance(const OpDiff& op, size_t row, CompareMode mode, double tolerance);

/// Outputs, gradients of parameters and saved values: what an op leaves behind. The rest is what it starts from.
bool IsResult(ItemState state);

/// Largest RowDistance over what the op starts from, and over its results.
struct OpDistance {
  float input = 0, output = 0;
  float tolerance = 0;  // OpTolerance
  bool dtypes = false;  // two tensors of one shape have different dtypes
  bool blind = false;   // an input's xor checksum is 0 on both sides, which equal elements in pairs give, too
};
OpDistance DistanceOf(const OpDiff& op, CompareMode mode);

/// True when row `i` is of two tensors that have the same shape and different dtypes.
bool DTypeChanges(const OpDiff& op, size_t i);

}  // namespace msprobe
