// The rows of one op: its items against those of its partner, and what is asked for.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "compare/values/dialect.h"
#include "compare/values/item_view.h"
#include "compare/values/tensor_diff.h"
#include "compare/values/thresholds.h"
#include "compare/values/verdict.h"

namespace msprobe {

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
  kNotCompared = 1 << 11,  // or in another order of dimensions: the text is in the row's TensorDiff
};

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

enum class RulerVerdict : uint8_t {
  kNone,        // nothing to measure: no partner, or no values
  kBitEqual,    // nothing differs
  kRoundOff,    // rounding of this op, and of what came before it, explains the difference
  kRewritten,   // differs inside a module that agrees: computed another way
  kInherited,   // more than rounding, but no more than the op's inputs brought with them
  kSuspicious,  // more than rounding is expected to give, less than it can give at worst
  kBug,         // more than rounding can give
};

/// What the ruler says of a row: its error relative to the golden run, its units of what explains it, and the verdict.
struct RulerCell {
  double error = 0, units = 0;
  RulerVerdict verdict = RulerVerdict::kNone;
};

struct RulerContext;
template <typename T>
class BigArray;

/// All of one op. Reused from op to op, so that a long comparison does not allocate; vectors keep their size, counts
/// tell what is valid.
struct OpDiff {
  std::string_view op, golden_op;  // their names; "" where that is not known
  bool matched = false;            // the op has a partner (its rows may still have none)
  bool skipped = false;            // no part of the comparison
  bool cross = false;              // of two frameworks, whose functions take other arguments: only tensors are compared
  bool implementations = false;    // of two programs for one model in one framework
  bool resplit = false;            // its ranks divide the model in another way: sums round otherwise everywhere
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
  Dialect dialect = kTableDialect;
  bool check_shape = true;  // false when the two sides are split differently (merged graphs)
  bool layouts = false;     // of two layouts: sizes, groups and requires_grad of what was received are no values
  bool resplit = false;     // of two layouts whose ranks divide the model otherwise: sums round in another order
  bool check_dtype = true;  // false when a mapping file names the pairs: any dtypes may stand against each other
  bool fused = false;  // training against inference: items of several ops are joined, shapes differ by dimensions of 1
  bool join_targets = false;              // of fused: those of the target (FSDP), not the golden ones (Megatron)
  bool cross = false;                     // of two frameworks: MindSpore does not record requires_grad
  bool implementations = false;           // of two programs for one model: dimensions may have another order
  const TensorSource* tensors = nullptr;  // tensor mode: where the values lie
  const Thresholds* thresholds = &DefaultThresholds();
  const BigArray<RulerContext>* contexts = nullptr;  // of each op of the target: rows are measured by the ruler
};

}  // namespace msprobe
