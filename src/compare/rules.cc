#include "compare/rules.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/text.h"
#include "compare/tensor_rules.h"

namespace msprobe {
namespace {

/// To what part of an op the rules apply, by its API.
enum class Scope : uint8_t { kAll, kOutputsOnly, kNothing };

std::string_view ApiOf(std::string_view op_name) {
  const size_t dot = op_name.find('.');
  if (dot == std::string_view::npos) return {};
  const std::string_view rest = op_name.substr(dot + 1);
  return rest.substr(0, rest.find('.'));
}

Scope ScopeOf(std::string_view op_name) {
  // Their output, or the buffer that they are given, is memory nobody has written yet.
  static constexpr std::string_view kUnwrittenInput[] = {"_reduce_scatter_base", "_all_gather_base",
                                                         "all_to_all_single", "batch_isend_irecv"};
  if (IsIgnoredApi(op_name)) return Scope::kNothing;
  const std::string_view api = ApiOf(op_name);
  return std::find(std::begin(kUnwrittenInput), std::end(kUnwrittenInput), api) != std::end(kUnwrittenInput)
             ? Scope::kOutputsOnly
             : Scope::kAll;
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

  void CheckNanInf(size_t i, const ItemView* b) {
    const ItemView& a = op.target[i];
    if (b && (b->stats[kMax].IsNanOrInf() || b->stats[kMin].IsNanOrInf())) return;
    if (a.stats[kMax].IsNanOrInf() || a.stats[kMin].IsNanOrInf()) Set(&op.rows[i], kNanInf, Verdict::kError);
  }

  void CheckPair(size_t i, const ItemView& b) {
    const ItemView& a = op.target[i];
    DiffRow* row = &op.rows[i];
    if (!row->grad_consistent && !options.fused) Set(row, kRequiresGrad, Verdict::kError);
    if (scope == Scope::kAll && !IsOutput(i)) CheckScalar(a, b, row);
    // Projections that an engine fuses (qkv, gate_up) are put together from several tensors: their dtype is not judged.
    const bool fused = Contains(b.name, "qkv") || Contains(b.name, "gate_up");
    if (!fused && !SameDType(a.dtype, b.dtype)) Set(row, kDType, Verdict::kError);
    row->shapes_fit = !options.check_shape || (options.fused && !ShapesDiffer(a, b, fused));
    if (options.check_shape && ShapesDiffer(a, b, fused)) Set(row, kShape, Verdict::kError);
  }

  bool ShapesDiffer(const ItemView& a, const ItemView& b, bool joined) const {
    if (a.shape == b.shape) return false;
    if (!options.fused) return true;
    if (options.join_targets && joined) return false;
    std::vector<int64_t> mine = Dimensions(a.shape), theirs = Dimensions(b.shape);
    // Megatron keeps the heads of an output apart.
    if (!options.join_targets && mine.size() == 3 && theirs.size() == 2) mine = {mine[0], mine[1] * mine[2]};
    return mine != theirs;
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

  static void CheckScalar(const ItemView& a, const ItemView& b, DiffRow* row) {
    if (!Contains(a.dtype, "class") || !Contains(b.dtype, "class") || a.shape != "[]") return;
    const StatValue &x = a.stats[kMax], &y = b.stats[kMax];
    // As Python compares: 0.0 equals -0.0, whose texts differ.
    const bool equal = x.IsNumber() && y.IsNumber() && x.AsDouble() == y.AsDouble();
    if (!equal && row->diff[kMax].diff_cell != StatDiff::Cell::kZero) Set(row, kScalarParameter, Verdict::kError);
  }

  void CheckChecksum(size_t i, const ItemView* b) {
    const ItemView& a = op.target[i];
    if (b ? a.checksum == b->checksum : a.checksum == "N/A") return;
    const bool missing = !b || a.checksum == "N/A" || b->checksum == "N/A";
    missing ? Set(&op.rows[i], kChecksumUnmatched, Verdict::kWarning)
            : Set(&op.rows[i], kChecksumDiffers, Verdict::kError);
  }

  /// Largest NormRelativeErr, as a ratio, over rows where it is a number.
  double WorstNorm(bool outputs) const {
    double worst = 0;
    for (size_t i = 0; i < op.rows_used; ++i) {
      const StatDiff& d = op.rows[i].diff[kNorm];
      if (IsOutput(i) == outputs && d.rel_cell == StatDiff::Cell::kNumber) worst = std::max(worst, d.rel / 100);
    }
    return worst;
  }

  bool WrongNorm(const StatDiff& d) const {
    if (d.rel_cell == StatDiff::Cell::kNumber) return d.rel / 100 > options.thresholds->output_wrong;
    return d.rel_cell == StatDiff::Cell::kInf || d.rel_cell == StatDiff::Cell::kNegInf;
  }

  void CheckGrowth() {
    const double in = WorstNorm(false), out = WorstNorm(true);
    DiffRow* first_output = nullptr;
    for (size_t i = 0; i < op.rows_used; ++i) {
      if (!IsOutput(i)) continue;
      if (!first_output) first_output = &op.rows[i];
      if (in < options.thresholds->input_agrees && WrongNorm(op.rows[i].diff[kNorm]))
        Set(&op.rows[i], kOutputRelativeError, Verdict::kError);
    }
    const bool grows = in == 0 ? out > options.thresholds->growth_from_zero : out / in > options.thresholds->growth;
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
      CheckNanInf(i, b);
      if (b) CheckPair(i, *b);
    }
    if (options.mode == CompareMode::kStatistics && scope == Scope::kAll) CheckGrowth();
    if (options.mode == CompareMode::kTensor) ApplyTensorRules(scope == Scope::kAll, &op);
  }
};

constexpr std::string_view kMessages[] = {
    "error: There is nan/inf/-inf in the maximum or minimum value of NPU.",
    "error: The NormRelativeErr of output is greater than 0.5.",
    "error: The input/parameters of One Thousandth Err Ratio > 0.9 while the output < 0.6.",
    "error: The Required_Grad of NPU and Bench are inconsistent",
    "error: The scalar parameters of NPU and Bench are inconsistent.",
    "error: The dtype of NPU and Bench are inconsistent.",
    "error: The shape of NPU and Bench are inconsistent.",
    "warning: The norm relative error of output is 10 times that of input.",
    "warning: The input/parameters of Cosine > 0.9, and input/parameters - output > 0.1",
    "error: The CRC-32 value of NPU differs from that of the bench.",
    "warning: The parameter of NPU does not match the bench.",
};

}  // namespace

bool IsIgnoredApi(std::string_view op_name) {
  static constexpr std::string_view kApis[] = {"empty",        "empty_like",        "numpy",
                                               "to",           "setitem",           "__setitem__",
                                               "new_empty",    "empty_with_format", "new_empty_strided",
                                               "empty_strided"};
  return std::find(std::begin(kApis), std::end(kApis), ApiOf(op_name)) != std::end(kApis);
}

std::string FindingsJson(uint16_t findings, std::string_view note) {
  std::string out = "[";
  for (size_t bit = 0; bit < std::size(kMessages); ++bit) {
    if (!(findings >> bit & 1)) continue;
    if (out.size() > 1) out += ", ";
    out += '"';
    out += kMessages[bit];
    out += '"';
  }
  if (findings & kNotCompared) {
    if (out.size() > 1) out += ", ";
    AppendJsonString(out, note);
  }
  return out + "]";
}

void ApplyRules(const DiffOptions& options, OpDiff* op) {
  if (options.mode == CompareMode::kTensor && !options.tensors) return;  // only the names are asked for
  Rules{options, *op, ScopeOf(op->op)}.Run();
}

}  // namespace msprobe
