// How far values are apart, in units of what rounding alone explains. docs/en/compare/ruler.md has the formulas.
#pragma once

#include <functional>

#include "base/big_array.h"
#include "compare/round_off/no_value.h"
#include "compare/values/op_diff.h"

namespace msprobe {

std::string_view RulerVerdictText(RulerVerdict v);

/// True where a difference starts.
inline bool Begins(RulerVerdict v) { return v == RulerVerdict::kSuspicious || v == RulerVerdict::kBug; }

/// Ops of a comparison by verdict; `none` are those without a partner or without values.
struct RulerCounts {
  uint64_t none = 0, bit_equal = 0, round_off = 0, inherited = 0, suspicious = 0, bug = 0;
  uint64_t rewritten = 0;  // differ inside a module that agrees: computed another way
  void Add(RulerVerdict v);
  /// One op that was counted as `v` proved to inherit.
  void Inherit(RulerVerdict v);
  /// One op that was counted as `v` has no value to judge.
  void Withdraw(RulerVerdict v);

 private:
  uint64_t& Of(RulerVerdict v);
};

/// Largest relative error of a row's statistics: of Norm against the norm, of the others against the amplitude, of the
/// larger side, so that judging does not depend on which side that is. Infinity is a difference in kind (NaN, text,
/// shape, checksum); 0 for rows without a partner, and where nobody wrote either side or nobody reads it. In tensor
/// mode that of the values (TensorDiff::error).
double RowError(const OpDiff& op, size_t row, CompareMode mode);

/// The same relative to the golden run, as all figures that people read. Infinity where that one is 0.
double ShownError(const OpDiff& op, size_t row, CompareMode mode);

/// The largest ShownError of tensors that the op starts from, and of its results; -1 without such rows.
struct ShownErrors {
  double input = -1, output = -1;
};
ShownErrors ShownErrorsOf(const OpDiff& op, CompareMode mode);

/// Relative error that round-off explains in values of a dtype: a few units in the last place; 0 for what has no
/// fraction.
double DTypeTolerance(const Thresholds& thresholds, std::string_view dtype);

/// Relative error between two runs that have rounded everywhere before: the largest of the op's tensors' dtypes, as
/// outputs carry the round-off of their inputs. 1e-5 for float32 and float64, 2e-3 for float16, 1.6e-2 for bfloat16,
/// 0.25 for float8; 0 without floating tensors.
double OpTolerance(const OpDiff& op);

/// How far a row is apart in units of `tolerance`, which is that of its op; parameters are judged by their own dtype,
/// integers and texts are equal or infinitely far apart. At most 1 is agreement.
double RowDistance(const OpDiff& op, size_t row, CompareMode mode, double tolerance);

/// What rounding in one op can do to the result in `row`, as relative errors: `expected` with independent rounding
/// errors, which grow as the square root of the number of terms, `worst` when all errors point the same way.
/// `condition` is how much the op enlarges relative errors of its inputs. From the statistics of the golden side.
struct RoundOff {
  double expected = 0, worst = 0, condition = 1;
};
RoundOff RoundOffOf(const OpDiff& op, size_t row);

/// A gradient that is a plain sum of the op's gradient (that of a bias, or of what was broadcast) and zero but for the
/// rounding of terms that cancel out, on both sides: its digits say nothing.
bool CancelsOut(const OpDiff& op, size_t row);

/// An op's agreement in a few numbers, for the walk over all ops that looks for the first difference.
struct OpDistance {
  float input = 0, output = 0;              // largest RowDistance over what the op starts from, and over its results
  float rounded = 0;                        // `input`, of floating tensors only
  float tolerance = 0;                      // OpTolerance
  float input_error = 0, output_error = 0;  // largest RowError of tensors
  float expected = 0, worst = 0;            // results in units of RoundOff::expected and ::worst
  float conditioned = 0;                    // output, where each row is divided by RoundOff::condition
  float amplitude = 0;                      // largest magnitude of its floating tensors, on either side
  bool matched = false;
  bool has_input = false, has_output = false;  // tensors on both sides
  bool dtypes = false;                         // two tensors of one shape have different dtypes
  bool blind = false;     // an input's xor checksum is 0 on both sides, which equal elements in pairs give, too
  bool argument = false;  // an argument that is not a tensor differs, or is there on one side only
  float computed = 0;    // of `argument`: the relative difference, where all that differ are numbers that were computed
  bool shapes = false;   // a tensor that the op starts from has another shape
  bool chosen = false;   // a tensor of integers or booleans that the op starts from differs
  bool choices = false;  // a result that holds integers or booleans differs: an index, a mask
  bool values = false;   // statistics of values are there: differences have a size
  float cancelled = 0;   // largest magnitude of the results that cancel out (CancelsOut); they count for nothing else
  float norm_input = 0, norm_output = -1;  // of two layouts: largest error of Norm of many elements; -1: not known
  bool one_sided = false;                  // of `argument`: a tensor that only one run gives
  bool other_call = false;  // a module's arguments are others (other_call.h): what it starts from is not compared
  float split = 0;          // elements of the first input of another shape, over those of the golden run; 0 without
  float setting_ratio = 0;  // of `setting`: the number over that of the golden run; 0 for other values
  bool reordered = false;   // inputs differ by what their statistics do not show: the same values in other places
  bool filled = false;      // an input holds a finite fill, which hides its other elements in most statistics
  bool mask = false;        // an input of truth values holds both: statistics do not show at which places
  bool masked = false;     // a softmax of infinities that adds up to 1: statistics do not show at which places they are
  bool setting = false;    // an argument that no shape explains differs: a flag, a word, a number as people write it
  bool few = true;         // no tensor has more than two elements: statistics tell all of them
  bool unread = false;     // the values of a tensor could not be read
  bool unwritten = false;  // it reads memory that nobody had written in either run
  bool parameter = false;  // a parameter differs by more than the round-off of its dtype
  bool rounded_parameter = false;  // one differs by no more; where a dump does not tell them, any but the first input
};

/// One entry for each op of the target, in dump order.
using OpDistances = BigArray<OpDistance>;
/// Over the rows that `counts` lets through; all without it.
OpDistance DistanceOf(const OpDiff& op, CompareMode mode, const std::function<bool(size_t row)>& counts = nullptr);

/// What the walk knows of an op beyond its own rows.
struct RulerContext {
  bool inherits = false;  // something before it differs by more than rounding, and reaches it or may do so
  float travelled = 0;    // tolerance of the coarsest dtype so far, when anything before it differs; else 0
  RulerVerdict verdict = RulerVerdict::kNone;  // of the op
  float calibrated = 0;                        // relative error of this op between two golden runs
};

/// One for each op of the target.
using RulerContexts = BigArray<RulerContext>;

/// A row in units of what explains its difference: below 1 is round-off.
struct RowRuler {
  double error = 0;  // RowError
  double units = 0;  // may be infinite
  RulerVerdict verdict = RulerVerdict::kNone;
};
/// `distance` is DistanceOf the op.
RowRuler MeasureRow(const OpDiff& op, size_t row, CompareMode mode, const OpDistance& distance,
                    const RulerContext& context);

/// Measures all rows into `op->ruler`.
void MeasureRows(CompareMode mode, const OpDistance& distance, const RulerContext& context, OpDiff* op);

/// True when row `i` is of two tensors that have the same shape and different dtypes.
bool DTypeChanges(const OpDiff& op, size_t i);

/// True when row `i` is of an argument that is not a tensor and differs; the sizes that come with a dtype ("float32",
/// the smallest finite number of a dtype) do not count.
bool ArgumentDiffers(const OpDiff& op, size_t i, CompareMode mode);

}  // namespace msprobe
