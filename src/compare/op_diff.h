// The comparison of one op with its partner: the rows of the table, their verdicts, and how far inputs and outputs are
// apart.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "compare/item_view.h"
#include "compare/tensor_diff.h"
#include "compare/thresholds.h"

namespace msprobe {

enum class Verdict : uint8_t { kPass, kWarning, kError };
std::string_view VerdictText(Verdict v);

/// Findings of a row, as bits; their order is the order of the messages.
enum Finding : uint16_t {
  kNanInf = 1 << 0,
  kOutputRelativeError = 1 << 1,
  kOneThousandth = 1 << 2,
  kRequiresGrad = 1 << 3,
  kScalarParameter = 1 << 4,
  kDType = 1 << 5,
  kShape = 1 << 6,
  kRelativeErrorGrows = 1 << 7,
  kCosineDrops = 1 << 8,
  kChecksumDiffers = 1 << 9,
  kChecksumUnmatched = 1 << 10,
  kNotCompared = 1 << 11,  // the text is in the row's TensorDiff
};

/// JSON list of the messages of `findings`, as the column Err_message holds it: "[]" or ["error: ...", ...]. `note` is
/// the text of kNotCompared.
std::string FindingsJson(uint16_t findings, std::string_view note = {});

inline constexpr int kNoItem = -1;

struct DiffRow {
  int golden = kNoItem;  // index of the partner; the row's own item has the row's index
  std::array<StatDiff, kStatCount> diff;
  bool grad_consistent = false;
  bool shapes_fit = false;   // although they differ as texts: training against inference
  bool golden_only = false;  // of the golden item alone; the row's own item is not there
  Verdict verdict = Verdict::kPass;
  uint16_t findings = 0;
};

/// What the ruler says of a row: its relative error, that in units of what explains it, and the verdict.
struct RulerCell {
  double error = 0, units = 0;
  std::string_view verdict;
};

struct RulerContext;
template <typename T>
class BigArray;

/// All of one op. Reused from op to op, so that a long comparison does not allocate; vectors keep their size, counts
/// tell what is valid.
struct OpDiff {
  std::string_view op;
  bool matched = false;  // the op has a partner (its rows may still have none)
  bool skipped = false;  // no part of the comparison
  std::vector<ItemView> target, golden;
  size_t rows_used = 0, golden_used = 0;
  ValidLengths valid;               // of the outputs of both sides, where an input says it
  std::vector<DiffRow> rows;        // one for each target item
  std::vector<TensorDiff> tensors;  // tensor mode: one for each row
  std::vector<RulerCell> ruler;     // when asked for: one for each row
  const Thresholds* thresholds = &DefaultThresholds();

  std::vector<Item> scratch;
  std::vector<std::unique_ptr<JsonDoc>> docs;  // of ops beyond the first, where items come from several
  std::deque<std::string> texts;               // that views of joined items point into
  std::vector<bool> golden_taken;
};

struct DiffOptions {
  CompareMode mode = CompareMode::kStatistics;
  bool check_shape = true;  // false when the two sides are split differently (merged graphs)
  bool check_dtype = true;  // false when a mapping file names the pairs: any dtypes may stand against each other
  bool fused = false;  // training against inference: items of several ops are joined, shapes differ by dimensions of 1
  bool join_targets = false;             // of fused: those of the target (FSDP), not the golden ones (Megatron)
  bool cross = false;                    // of two frameworks: MindSpore does not record requires_grad
  const TensorPairs* tensors = nullptr;  // tensor mode: where the values lie
  const Thresholds* thresholds = &DefaultThresholds();
  const BigArray<RulerContext>* contexts = nullptr;  // of each op of the target: rows are measured by the ruler
};

/// Fills `out` from the two JSON objects; `golden` is null for an op without a partner. The views in `out` point into
/// them.
void DiffOps(std::string_view target_name, const JsonValue& target, std::string_view golden_name,
             const JsonValue* golden, const DiffOptions& options, OpDiff* out);

/// The row that shows the op's call stack: the first with an item of the target.
inline size_t StackRow(const OpDiff& op) {
  size_t row = 0;
  while (row < op.rows_used && op.rows[row].golden_only) ++row;
  return row;
}

/// The second half of DiffOps: items stand in `out` (target and golden, with their numbers), and those with one suffix
/// become partners.
void DiffItems(const DiffOptions& options, OpDiff* out);

/// True for ops whose results are meant to be arbitrary (empty, ...): no rule applies to them.
bool IsIgnoredApi(std::string_view op_name);

/// True when values of these dtypes may be compared: equal, or both floating.
bool DTypesMatch(std::string_view a, std::string_view b);

/// True for two names of one dtype: "torch.float32" and MindSpore's "Float32".
bool SameDType(std::string_view a, std::string_view b);

}  // namespace msprobe
