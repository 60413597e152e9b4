#include "graph/precision.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/text.h"
#include "compare/tensor_diff.h"
#include "compare/thresholds.h"
#include "graph/node_graph.h"

namespace msprobe {
namespace {

constexpr char kInfNan[] = "error: There is nan/inf/-inf in the maximum or minimum value of NPU.";
constexpr char kRequiresGrad[] = "error: The Required_Grad of NPU and Bench are inconsistent";
constexpr char kScalars[] = "error: The scalar parameters of NPU and Bench are inconsistent.";
constexpr char kDtype[] = "error: The dtype of NPU and Bench are inconsistent.";
constexpr char kShape[] = "error: The shape of NPU and Bench are inconsistent.";
constexpr char kChecksum[] = "error: The CRC-32 value of NPU differs from that of the bench.";
constexpr char kNoChecksum[] = "warning: The parameter of NPU does not match the bench.";

constexpr std::array<std::string_view, 9> kIgnored{"empty",     "empty_like",        "numpy",
                                                   "to",        "__setitem__",       "empty_with_format",
                                                   "new_empty", "new_empty_strided", "empty_strided"};
constexpr std::array<std::string_view, 4> kPlaceholderInputs{"_reduce_scatter_base", "_all_gather_base",
                                                             "all_to_all_single", "batch_isend_irecv"};
// Calls that return memory as it is: nothing about their values can be wrong.
constexpr std::array<std::string_view, 6> kUndefined{"empty",     "empty_like",        "empty_with_format",
                                                     "new_empty", "new_empty_strided", "empty_strided"};

template <size_t N>
bool In(const std::array<std::string_view, N>& list, std::string_view s) {
  return std::find(list.begin(), list.end(), s) != list.end();
}

bool IsInteger(const Value& v) { return v.kind == Value::Kind::kInt || v.kind == Value::Kind::kUInt; }

__int128 Wide(const Value& v) { return v.kind == Value::Kind::kInt ? __int128{v.i} : __int128{v.u}; }

std::string Digits(__int128 v) {
  std::string out;
  for (__int128 rest = v < 0 ? -v : v; rest > 0; rest /= 10)
    out += static_cast<char>('0' + static_cast<int>(rest % 10));
  if (v < 0) out += '-';
  std::reverse(out.begin(), out.end());
  return out;
}

int GroupOf(const Param& p) {
  switch (p.state) {
    case ItemState::kParameter: return 1;
    case ItemState::kOutput: return 2;
    case ItemState::kParameterGrad: return 3;
    default: return 0;
  }
}

void Fail(Row* row, Level level, const char* message) {
  row->level = std::max(row->level, level);
  row->messages.push_back(message);
}

bool IsGiven(const Value& v) { return !v.is_null() && !(v.is_text() && v.text.empty()); }

// What the rows say about a null statistic is the text None, so null equals null but no number.
bool SameStatistic(const Value& a, const Value& b) {
  if (a.kind == Value::Kind::kDouble && b.kind == Value::Kind::kDouble && std::isnan(a.d) && std::isnan(b.d))
    return true;
  if (a.is_null() != b.is_null()) return (a.is_text() && a.text == "None") || (b.is_text() && b.text == "None");
  return SameValue(a, b);
}

bool IsScalarOfClass(const Param& p) { return p.dtype.is_text() && Contains(p.dtype.text, "class"); }

bool IsEmptyShape(const Value& shape) {
  std::string text;
  AppendPyStr(text, shape);
  return text == "[]";
}

double RelativeNorm(const Row& row) {
  return row.norm.relative.kind == Value::Kind::kDouble ? row.norm.relative.d / 100 : 0;
}

// NaN never wins, as in Python's max(best, value).
double LargestRelativeNorm(const std::vector<Row*>& rows) {
  double best = 0;
  for (const Row* row : rows) {
    const double v = RelativeNorm(*row);
    if (v > best) best = v;
  }
  return std::fabs(best);
}

void CheckInfNan(Row* row) {
  if (!row->bench || row->bench->max.IsInfOrNan() || row->bench->min.IsInfOrNan()) return;
  if (row->npu->max.IsInfOrNan() || row->npu->min.IsInfOrNan()) Fail(row, Level::kError, kInfNan);
}

void CheckRequiresGrad(Row* row) {
  const Value& a = row->npu->requires_grad;
  if (!IsGiven(a)) return;
  if (!row->bench) return Fail(row, Level::kError, kRequiresGrad);
  const Value& b = row->bench->requires_grad;
  if (IsGiven(b) && !SameValue(a, b)) Fail(row, Level::kError, kRequiresGrad);
}

void CheckScalar(Row* row) {
  if (!row->bench || !IsScalarOfClass(*row->npu) || !IsScalarOfClass(*row->bench)) return;
  if (IsEmptyShape(row->npu->shape) && !SameStatistic(row->npu->max, row->bench->max))
    Fail(row, Level::kError, kScalars);
}

void CheckDtype(Row* row) {
  const Value& a = row->npu->dtype;
  if (!IsGiven(a)) return;
  if (!row->bench) return Fail(row, Level::kError, kDtype);
  // Fused projections are compared with the parts they were fused from, which may be kept in another type.
  if (Contains(row->bench->name, "qkv") || Contains(row->bench->name, "gate_up")) return;
  const Value& b = row->bench->dtype;
  if (IsGiven(b) && !SameValue(a, b)) Fail(row, Level::kError, kDtype);
}

void CheckShape(Row* row) {
  const Value& a = row->npu->shape;
  if (a.is_null()) return;
  if (!row->bench) return Fail(row, Level::kError, kShape);
  const Value& b = row->bench->shape;
  if (!b.is_null() && !SameValue(a, b)) Fail(row, Level::kError, kShape);
}

void CheckChecksum(Row* row) {
  static constexpr std::array<std::string_view, 3> kMissing{"N/A", "Nan", ""};
  const Value& a = row->npu->md5;
  const Value b = row->bench ? row->bench->md5 : Value::Of(std::string_view("Nan"));
  if (SameValue(a, b)) return;
  const bool missing = (a.is_text() && In(kMissing, a.text)) || (b.is_text() && In(kMissing, b.text));
  Fail(row, missing ? Level::kWarning : Level::kError, missing ? kNoChecksum : kChecksum);
}

// "softmax_rank3" -> "softmax"
std::string_view WithoutRank(std::string_view api) {
  const size_t at = api.rfind("_rank");
  return at != std::string_view::npos && IsDigits(api.substr(at + 5)) ? api.substr(0, at) : api;
}

struct Sides {
  std::vector<Row*> in, out;
};

void CheckRelativeError(const Sides& sides, const NodeRules& rules) {
  if (!(LargestRelativeNorm(sides.in) < rules.t.input_agrees)) return;
  for (Row* row : sides.out) {
    if (std::fabs(RelativeNorm(*row)) > rules.t.output_wrong) Fail(row, Level::kError, rules.relative_error.c_str());
  }
}

void CheckRelativeGrowth(const Sides& sides, const NodeRules& rules) {
  if (sides.out.empty()) return;
  const double in = LargestRelativeNorm(sides.in), out = LargestRelativeNorm(sides.out);
  if (in == 0 ? out > rules.t.growth_from_zero : out / in > rules.t.growth)
    Fail(sides.out[0], Level::kWarning, rules.relative_growth.c_str());
}

/// Smallest value among those that are numbers; 1 without any.
double Smallest(const std::vector<Row*>& rows, Metric metric) {
  double out = 1;
  for (const Row* row : rows) {
    if (!row->tensor) continue;
    const MetricCell& cell = row->tensor->cells[metric];
    if (cell.IsNumber()) out = std::min(out, cell.value);
  }
  return out;
}

void CheckThousandths(const Sides& sides, const NodeRules& rules) {
  if (sides.out.empty()) return;
  const double in = Smallest(sides.in, kOneThousandthRatio), out = Smallest(sides.out, kOneThousandthRatio);
  if (in > rules.t.ratio_agrees && out < rules.t.ratio_wrong)
    Fail(sides.out[0], Level::kError, rules.thousandth.c_str());
}

void CheckCosine(const Sides& sides, const NodeRules& rules) {
  if (sides.out.empty()) return;
  const double in = Smallest(sides.in, kCosine);
  if (in > rules.t.cosine_agrees && in - Smallest(sides.out, kCosine) > rules.t.cosine_drop)
    Fail(sides.out[0], Level::kWarning, rules.cosine.c_str());
}

}  // namespace

bool IsIgnoredNode(std::string_view node) { return In(kIgnored, Segment(node, 1)); }
bool HasPlaceholderInputs(std::string_view node) { return In(kPlaceholderInputs, Segment(node, 1)); }

std::string_view ModeName(GraphMode mode) {
  static constexpr std::array<std::string_view, 4> kNames{"summary", "md5", "all", "structure"};
  return kNames[static_cast<size_t>(mode)];
}

std::string_view LevelName(Level level) {
  static constexpr std::array<std::string_view, 3> kNames{"pass", "warning", "error"};
  return kNames[static_cast<size_t>(level)];
}

Difference Subtract(const Value& target, const Value& golden) {
  Difference out;
  if (!target.is_number() || !golden.is_number()) return out;
  const double a = target.AsDouble(), b = golden.AsDouble();
  double diff = a - b;
  if (std::isnan(diff)) {
    out.value = out.relative = Value::Of(std::string_view("Nan"));
    return out;
  }
  out.value = Value::Of(diff);
  if (IsInteger(target) && IsInteger(golden)) {
    const __int128 exact = Wide(target) - Wide(golden);
    diff = static_cast<double>(exact);
    if (exact >= std::numeric_limits<int64_t>::min() && exact <= std::numeric_limits<int64_t>::max()) {
      out.value = Value::Of(static_cast<int64_t>(exact));
    } else {
      out.value = Value::Of(diff);
      out.wide = Digits(exact);
    }
  } else if (std::isinf(diff)) {
    out.value = Value::Of(diff < 0 ? std::string_view("-inf\t") : std::string_view("inf\t"));
  }
  if (b != 0) out.relative = Value::Of(std::fabs(diff / b * 100));
  return out;
}

void CompareParams(GraphMode mode, const ParamList& npu, const ParamList& bench, std::vector<Row>* rows) {
  rows->clear();
  if (mode == GraphMode::kStructure) return;
  static const Value kBlank = Value::Of(std::string_view(" "));
  for (int group = 0; group < 4; ++group) {
    size_t next = 0;  // candidate on the golden side
    for (size_t i = 0; i < npu.size(); ++i) {
      if (GroupOf(npu[i]) != group) continue;
      while (next < bench.size() && GroupOf(bench[next]) != group) ++next;
      Row& row = rows->emplace_back();
      row.npu = &npu[i];
      if (next >= bench.size()) {
        row.max = row.min = row.mean = row.norm = {kBlank, kBlank, {}};
        continue;
      }
      row.bench = &bench[next++];
      row.same_requires_grad = SameValue(row.npu->requires_grad, row.bench->requires_grad);
      if (mode != GraphMode::kSummary) continue;
      row.max = Subtract(row.npu->max, row.bench->max);
      row.min = Subtract(row.npu->min, row.bench->min);
      row.mean = Subtract(row.npu->mean, row.bench->mean);
      row.norm = Subtract(row.npu->norm, row.bench->norm);
    }
  }
}

NodeRules::NodeRules(const Thresholds& thresholds)
    : t(thresholds),
      relative_error(fmt::format("error: The NormRelativeErr of output is greater than {}.", t.output_wrong)),
      relative_growth(fmt::format("warning: The norm relative error of output is {} times that of input.", t.growth)),
      thousandth(fmt::format("error: The input/parameters of One Thousandth Err Ratio > {} while the output < {}.",
                             t.ratio_agrees, t.ratio_wrong)),
      cosine(fmt::format("warning: The input/parameters of Cosine > {}, and input/parameters - output > {}",
                         t.cosine_agrees, t.cosine_drop)) {}

const NodeRules& DefaultNodeRules() {
  static const NodeRules kRules(DefaultThresholds());
  return kRules;
}

Level JudgeNode(GraphMode mode, std::string_view node, std::vector<Row>* rows, bool merged, const NodeRules& rules) {
  Sides sides;
  for (Row& row : *rows) (row.npu->is_output() ? sides.out : sides.in).push_back(&row);
  const std::string_view api = merged ? WithoutRank(Segment(node, 1)) : Segment(node, 1);
  if (In(kIgnored, api)) return Level::kPass;
  const bool outputs_only = In(kPlaceholderInputs, api), tensor = mode == GraphMode::kTensor;
  const auto each = [&](void (*check)(Row*)) {
    if (!outputs_only) std::for_each(sides.in.begin(), sides.in.end(), check);
    std::for_each(sides.out.begin(), sides.out.end(), check);
  };
  if (mode == GraphMode::kMd5) {
    each(CheckChecksum);
  } else {
    each(CheckInfNan);
    if (!outputs_only) (tensor ? CheckThousandths : CheckRelativeError)(sides, rules);
    each(CheckRequiresGrad);
    if (!outputs_only) std::for_each(sides.in.begin(), sides.in.end(), CheckScalar);
    each(CheckDtype);
    if (!merged) each(CheckShape);
    if (!outputs_only) (tensor ? CheckCosine : CheckRelativeGrowth)(sides, rules);
  }
  if (In(kUndefined, api)) return Level::kPass;
  Level worst = Level::kPass;
  for (const Row& row : *rows) worst = std::max(worst, row.level);
  return worst;
}

}  // namespace msprobe
