
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "compare/values/dtype_match.h"
#include "compare/values/not_read.h"
#include "compare/values/other_shape.h"
#include "compare/values/tensor_rules.h"
#include "json/writer.h"
#include "ops/collective.h"
#include "ops/op_name.h"
#include "ops/op_traits.h"

namespace msprobe {
namespace {

/// To what part of an op the rules apply, by its API.
enum class Scope : uint8_t { kAll, kOutputsOnly, kNothing };

/// Of "Torch.softmax_rank3.0.forward", a call in the graph of merged ranks, the name without its rank.
std::string WithoutRank(std::string_view op_name) {
  const std::string_view api = ApiOf(op_name);
  const size_t at = api.rfind("_rank");
  if (at == std::string_view::npos || !IsDigits(api.substr(at + 5))) return std::string(op_name);
  return "." + std::string(api.substr(0, at));
}

Scope ScopeOf(std::string_view op_name) {
  if (IsIgnoredApi(op_name)) return Scope::kNothing;
  return ComparesOutputsOnly(ApiOf(op_name)) ? Scope::kOutputsOnly : Scope::kAll;
}

struct Rules {
  const DiffOptions& options;
  OpDiff& op;
  Scope scope;

  static void Set(DiffRow* row, Finding finding, Verdict verdict) {
    row->findings |= finding;
    row->verdict = std::max(row->verdict, verdict);
  }
  bool IsOutput(size_t i) const { return op.target[i].state == ItemState::kOutput; }
  const ItemView* Partner(size_t i) const {
    const int g = op.rows[i].golden;
    return g == kNoItem ? nullptr : &op.golden[static_cast<size_t>(g)];
  }

  /// The two sides of the row are not the same part of a whole.
  bool IsApart(size_t i) const {
    const ItemView* b = Partner(i);
    return op.target[i].other_part || (b && b->other_part);
  }

  void CheckNanInf(size_t i, const ItemView* b) {
    const ItemView& a = op.target[i];
    if (a.unwritten || a.partly_unwritten || IsNotRead(op.op, op.target, op.rows_used, i)) return;
    if (b ? b->stats[kMax].IsNanOrInf() || b->stats[kMin].IsNanOrInf() : options.dialect.judges_alone) return;
    if (a.stats[kMax].IsNanOrInf() || a.stats[kMin].IsNanOrInf()) Set(&op.rows[i], kNanInf, Verdict::kError);
  }

  /// Whether a field is judged that the two items have, or have not.
  bool Judged(bool target, bool golden) const { return !options.dialect.skips_unknown || (target && golden); }

  /// What an item is: its dtype, its shape, whether it wants a gradient; the value of what is not a tensor.
  void CheckFields(size_t i, const ItemView* b) {
    if (!b && (!options.dialect.judges_alone || options.layouts)) return;
    const ItemView& a = op.target[i];
    const ItemView& known = b ? *b : a;  // what is missing altogether is judged by what is there
    DiffRow* row = &op.rows[i];
    const auto has_grad = [](const ItemView& item) { return item.requires_grad != ItemView::Grad::kNA; };
    if (!row->grad_consistent && !options.fused && !options.implementations && Judged(has_grad(a), has_grad(known))) {
      Set(row, kRequiresGrad, Verdict::kError);
    }
    if (b && scope == Scope::kAll && !IsOutput(i) && !options.cross && !IsOfLayout(a, *b)) CheckScalar(a, *b, row);
    // Projections that an engine fuses (qkv, gate_up) are put together from several tensors: their dtype is not judged.
    const bool fused = b && (Contains(b->name, "qkv") || Contains(b->name, "gate_up"));
    if (!fused && Judged(a.HasDType(), known.HasDType()) && (!b || !SameType(a, *b))) {
      Set(row, kDType, Verdict::kError);
    }
    const bool other_shape = !b || ShapesDiffer(a, *b, fused);
    row->shapes_fit = b && (!options.check_shape || ((options.fused || options.cross) && !other_shape));
    if (options.check_shape && other_shape && Judged(a.HasShape(), known.HasShape())) {
      Set(row, kShape, Verdict::kError);
    }
  }

  static bool IsFloat(std::string_view dtype) { return dtype.find("loat") != std::string_view::npos; }

  /// Frameworks have integers of their own for indices; numbers that are no tensors are not compared between them.
  bool SameType(const ItemView& a, const ItemView& b) const {
    if (SameDType(a.dtype, b.dtype)) return true;
    // A stage may have the number 1 where another one has a tensor of it: their values are judged.
    const bool number = !a.tensor || !b.tensor;
    if (options.layouts && number && a.stats[kMax].IsNumber() && b.stats[kMax].IsNumber()) return true;
    if (!options.cross) return false;
    // Of two implementations one may keep angles or losses in float32, which the summary says once.
    if (options.implementations && IsFloat(a.dtype) && IsFloat(b.dtype)) return true;
    return !a.tensor || !b.tensor || (IsInteger(ParseDType(a.dtype)) && IsInteger(ParseDType(b.dtype)));
  }

  bool ShapesDiffer(const ItemView& a, const ItemView& b, bool joined) const {
    if (a.shape == b.shape) return options.dialect.tells_kinds && a.tensor != b.tensor;
    // The order of dimensions is no value: [s, b, h] and [b, s, h], heads in front of the sequence or behind it.
    if (options.implementations && a.tensor && b.tensor && ElementsOfShape(a.shape) == ElementsOfShape(b.shape))
      return false;
    if (options.cross) return a.tensor && b.tensor && OtherOfCross(a, b) == OtherShape::kNone;
    if (!options.fused) return true;
    if (options.join_targets && joined) return false;
    std::vector<int64_t> target = Dimensions(a.shape), golden = Dimensions(b.shape);
    // Megatron keeps the heads of an output apart.
    if (!options.join_targets && target.size() == 3 && golden.size() == 2) target = {target[0], target[1] * target[2]};
    return target != golden;
  }

  static OtherShape OtherOfCross(const ItemView& a, const ItemView& b) {
    return CompareShapes(Dimensions(a.shape), Dimensions(b.shape), MayBeTransposed(a));
  }

  /// Of "[1, 12, 32]" those that are not 1.
  static std::vector<int64_t> Dimensions(std::string_view shape) {
    std::vector<int64_t> out;
    int64_t n = 0;
    bool digits = false;
    for (const char c : shape) {
      if (c >= '0' && c <= '9') {
        n = std::min<int64_t>(n * 10 + (c - '0'), int64_t{1} << 31);
        digits = true;
        continue;
      }
      if (digits && n != 1) out.push_back(n);
      n = 0;
      digits = false;
    }
    return out;
  }

  /// Sizes, places and groups are others where a model is split otherwise.
  bool IsOfLayout(const ItemView& a, const ItemView& b) const {
    return options.layouts && ((a.stats[kMax].IsInteger() && b.stats[kMax].IsInteger()) || a.IsProcessGroup());
  }

  static void CheckScalar(const ItemView& a, const ItemView& b, DiffRow* row) {
    if (!Contains(a.dtype, "class") || !Contains(b.dtype, "class") || a.shape != "[]") return;
    if (!SameValue(a.stats[kMax], b.stats[kMax])) Set(row, kScalarParameter, Verdict::kError);
  }

  void CheckChecksum(size_t i, const ItemView* b) {
    const bool kinds = options.dialect.tells_kinds;
    const auto missing = [kinds](const ItemView& item) {
      if (kinds && !item.HasDType()) return false;  // null is a checksum of its own
      return item.checksum == kNotAvailableText || item.checksum == "Nan" || item.checksum.empty();
    };
    const ItemView& a = op.target[i];
    if (b ? a.checksum == b->checksum && (!kinds || a.HasDType() == b->HasDType())
          : missing(a) && !options.dialect.judges_alone) {
      return;
    }
    !b || missing(a) || missing(*b) ? Set(&op.rows[i], kChecksumUnmatched, Verdict::kWarning)
                                    : Set(&op.rows[i], kChecksumDiffers, Verdict::kError);
  }

  /// Largest NormRelativeErr, as a ratio, over rows where it is a number.
  double WorstNorm(bool outputs) const {
    double worst = 0;
    for (size_t i = 0; i < op.rows_used; ++i) {
      const StatDiff& d = op.rows[i].diff[kNorm];
      if (IsOutput(i) == outputs && !IsApart(i) && d.rel_cell == StatDiff::Cell::kNumber)
        worst = std::max(worst, d.rel / 100);
    }
    return worst;
  }

  bool WrongNorm(const StatDiff& d) const {
    if (d.rel_cell == StatDiff::Cell::kNumber) return d.rel / 100 > options.thresholds->output_wrong;
    return d.rel_cell == StatDiff::Cell::kInf || d.rel_cell == StatDiff::Cell::kNegInf;
  }

  double RoundingOf(const DiffRow& row) const {
    return options.thresholds->ToleranceOf(ParseDType(op.target[static_cast<size_t>(&row - op.rows.data())].dtype));
  }

  void CheckGrowth() {
    const double in = WorstNorm(false), out = WorstNorm(true);
    DiffRow* first_output = nullptr;
    for (size_t i = 0; i < op.rows_used; ++i) {
      if (!IsOutput(i) || IsApart(i)) continue;
      if (!first_output) first_output = &op.rows[i];
      if (in < options.thresholds->input_agrees && WrongNorm(op.rows[i].diff[kNorm]))
        Set(&op.rows[i], kOutputRelativeError, Verdict::kError);
    }
    const bool grows = in == 0 ? out > options.thresholds->growth_from_zero : out / in > options.thresholds->growth;
    // Two implementations round differently everywhere.
    if (options.implementations && first_output && out <= RoundingOf(*first_output)) return;
    if (first_output && grows) Set(first_output, kRelativeErrorGrows, Verdict::kWarning);
  }

  void Run() {
    if (scope == Scope::kNothing) return;
    for (size_t i = 0; i < op.rows_used; ++i) {
      if (scope == Scope::kOutputsOnly && !IsOutput(i)) continue;
      const ItemView* b = Partner(i);
      if (options.mode == CompareMode::kChecksum) {
        CheckChecksum(i, b);
        continue;
      }
      if (IsApart(i)) continue;
      CheckNanInf(i, b);
      CheckFields(i, b);
    }
    if (options.mode == CompareMode::kStatistics && scope == Scope::kAll) CheckGrowth();
    if (options.mode == CompareMode::kTensor) ApplyTensorRules(scope == Scope::kAll, &op);
  }
};

constexpr Finding kAllFindings[] = {
    kNanInf, kOutputRelativeError, kOneThousandth, kRequiresGrad,    kScalarParameter,  kDType,
    kShape,  kRelativeErrorGrows,  kCosineDrops,   kChecksumDiffers, kChecksumUnmatched};

std::string MessageOf(Finding finding, const Thresholds& t) {
  switch (finding) {
    case kNanInf: return "error: There is nan/inf/-inf in the maximum or minimum value of NPU.";
    case kOutputRelativeError:
      return fmt::format("error: The NormRelativeErr of output is greater than {}.", t.output_wrong);
    case kOneThousandth:
      return fmt::format("error: The input/parameters of One Thousandth Err Ratio > {} while the output < {}.",
                         t.ratio_agrees, t.ratio_wrong);
    case kRequiresGrad: return "error: The Required_Grad of NPU and Bench are inconsistent";
    case kScalarParameter: return "error: The scalar parameters of NPU and Bench are inconsistent.";
    case kDType: return "error: The dtype of NPU and Bench are inconsistent.";
    case kShape: return "error: The shape of NPU and Bench are inconsistent.";
    case kRelativeErrorGrows:
      return fmt::format("warning: The norm relative error of output is {} times that of input.", t.growth);
    case kCosineDrops:
      return fmt::format("warning: The input/parameters of Cosine > {}, and input/parameters - output > {}",
                         t.cosine_agrees, t.cosine_drop);
    case kChecksumDiffers: return "error: The CRC-32 value of NPU differs from that of the bench.";
    case kChecksumUnmatched: return "warning: The parameter of NPU does not match the bench.";
    case kNotCompared: break;
  }
  return {};
}

}  // namespace

std::string FindingsJson(const OpDiff& op, size_t row) {
  const uint16_t findings = op.rows[row].findings;
  if (findings == 0) return "[]";
  JsonWriter json;
  json.BeginArray();
  for (const Finding finding : kAllFindings) {
    if (findings & finding) json.String(MessageOf(finding, *op.thresholds));
  }
  if (findings & kNotCompared) json.String(row < op.tensors.size() ? std::string_view(op.tensors[row].finding) : "");
  json.EndArray();
  return json.Take();
}

Verdict VerdictOf(const OpDiff& op) {
  Verdict worst = Verdict::kPass;
  for (size_t i = 0; i < op.rows_used; ++i) {
    if (op.cross && op.rows[i].golden == kNoItem) continue;  // an operand that only one framework has
    worst = std::max(worst, op.rows[i].verdict);
  }
  return worst;
}

void ApplyRules(const DiffOptions& options, OpDiff* op) {
  if (options.mode == CompareMode::kTensor && !options.tensors) return;  // only the names are asked for
  Rules{options, *op, options.check_shape ? ScopeOf(op->op) : ScopeOf(WithoutRank(op->op))}.Run();
}

}  // namespace msprobe
