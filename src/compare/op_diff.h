// The comparison of one op with its partner: the rows of the table, their verdicts, and how far inputs and outputs are
// apart.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compare/item_view.h"

namespace msprobe {

enum class Verdict : uint8_t { kPass, kWarning, kError };
std::string_view VerdictText(Verdict v);

/// Findings of a row, as bits; their order is the order of the messages.
enum Finding : uint16_t {
  kNanInf = 1 << 0,
  kOutputRelativeError = 1 << 1,
  kRequiresGrad = 1 << 2,
  kScalarParameter = 1 << 3,
  kDType = 1 << 4,
  kShape = 1 << 5,
  kRelativeErrorGrows = 1 << 6,
  kChecksumDiffers = 1 << 7,
  kChecksumUnmatched = 1 << 8,
};

/// JSON list of the messages of `findings`, as the column Err_message holds it: "[]" or ["error: ...", ...].
std::string FindingsJson(uint16_t findings);

inline constexpr int kNoItem = -1;

struct DiffRow {
  int golden = kNoItem;  // index of the partner; the row's own item has the row's index
  std::array<StatDiff, kStatCount> diff;
  bool grad_consistent = false;
  Verdict verdict = Verdict::kPass;
  uint16_t findings = 0;
};

/// All of one op. Reused from op to op, so that a long comparison does not allocate; vectors keep their size, counts
/// tell what is valid.
struct OpDiff {
  std::string_view op;
  bool matched = false;  // the op has a partner (its rows may still have none)
  std::vector<ItemView> target, golden;
  size_t rows_used = 0, golden_used = 0;
  std::vector<DiffRow> rows;  // one for each target item

  std::vector<Item> scratch;
  std::vector<bool> golden_taken;
};

struct DiffOptions {
  CompareMode mode = CompareMode::kStatistics;
  bool check_shape = true;  // false when the two sides are split differently (merged graphs)
  bool check_dtype = true;  // false when a mapping file names the pairs: any dtypes may stand against each other
};

/// Fills `out` from the two JSON objects; `golden` is null for an op without a partner. The views in `out` point into
/// them.
void DiffOps(std::string_view target_name, const JsonValue& target, std::string_view golden_name,
             const JsonValue* golden, const DiffOptions& options, OpDiff* out);

/// Largest relative error of a row's statistics: of Norm against the norm, of the others against the amplitude.
/// Infinity is a difference in kind (NaN, text, shape, checksum); 0 for rows without a partner.
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

/// True for ops whose results are meant to be arbitrary (empty, ...): no rule applies to them.
bool IsIgnoredApi(std::string_view op_name);

/// True when values of these dtypes may be compared: equal, or both floating.
bool DTypesMatch(std::string_view a, std::string_view b);

/// True when row `i` is of two tensors that have the same shape and different dtypes.
bool DTypeChanges(const OpDiff& op, size_t i);

}  // namespace msprobe
