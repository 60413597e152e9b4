#include "compare/round_off/ruler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/text.h"
#include "compare/round_off/at_place.h"
#include "compare/round_off/fills.h"
#include "compare/round_off/norm_mode.h"
#include "compare/round_off/other_call.h"
#include "compare/round_off/settings.h"
#include "ops/op_name.h"
#include "ops/op_traits.h"
#include "tensor/kernels/dtype.h"

namespace msprobe {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kCopiedNorm = 2.5e-4;                                  // of weights that one file gave to both runs
constexpr double kStepped = 0.125;                                      // of a tolerance: weights that were updated
constexpr double kAverages = 256;                                       // so many roundings hardly show in a norm
constexpr double kLeastError = std::numeric_limits<double>::epsilon();  // of what differs and does not show how much

double Magnitude(const StatValue& v) { return v.IsNumber() ? std::fabs(v.AsDouble()) : 0; }

/// Relative error of one statistic; infinity for a difference in kind.
double StatError(const ItemView& a, const ItemView& b, size_t k, double scale) {
  const StatValue &x = a.stats[k], &y = b.stats[k];
  if (x.IsNumber() && y.IsNumber()) {
    const double p = x.AsDouble(), q = y.AsDouble();
    // Integers beyond 2^53 differ although their doubles do not.
    if (p == q) return SameValue(x, y) ? 0 : kLeastError;
    if (std::isfinite(p) && std::isfinite(q)) return scale == 0 ? kInfinity : std::fabs(p - q) / scale;
    return std::isnan(p) && std::isnan(q) ? 0 : kInfinity;
  }
  const StatDiff diff = DiffStats(x, y);
  switch (diff.diff_cell) {
    case StatDiff::Cell::kZero:
    case StatDiff::Cell::kNA: return 0;
    // One tool version writes a statistic where another leaves it out.
    case StatDiff::Cell::kDiff: return x.IsNone() || y.IsNone() ? 0 : kInfinity;
    default: return x.IsNanOrInf() && y.IsNanOrInf() && x.text == y.text ? 0 : kInfinity;
  }
}

/// What a difference is divided by.
enum class Against : uint8_t { kLarger, kGolden };

double Divisor(double target, double golden, Against against) {
  return against == Against::kGolden ? golden : std::max(target, golden);
}

double StatisticsError(const ItemView& a, const ItemView& b, Against against) {
  const double amplitude = Divisor(Amplitude(a), Amplitude(b), against);
  if (FilledOtherwise(a, b)) {
    if (BothFills(a.stats[kMax], b.stats[kMax])) return 0;
    return StatError(a, b, kMax, Divisor(AmplitudeWithoutFill(a), AmplitudeWithoutFill(b), against));
  }
  const bool limits = !SameDType(a.dtype, b.dtype) && IsDTypeLimit(Amplitude(a)) && IsDTypeLimit(Amplitude(b));
  double worst = 0;
  for (size_t k = kMax; k < kStatCount; ++k) {
    // Of fused layers Mean and Norm may be several numbers.
    if (k >= kMean && (a.joined || b.joined) && !(a.stats[k].IsNumber() && b.stats[k].IsNumber())) continue;
    if (limits && (k >= kMean || IsDTypeLimit(Magnitude(a.stats[k])))) continue;
    // Max, Min and Mean are judged against the amplitude: a mean near 0 has no meaningful relative error of its own.
    const double scale = k == kNorm ? Divisor(Magnitude(a.stats[k]), Magnitude(b.stats[k]), against) : amplitude;
    worst = std::max(worst, StatError(a, b, k, scale));
  }
  return worst;
}

bool IsNull(const ItemView& v) { return v.dtype == "N/A" || v.dtype == "<class 'NoneType'>"; }
bool IsDTypeText(const StatValue& v) {
  return v.IsText() && (StartsWith(v.text, "torch.") || StartsWith(v.text, "mindspore."));
}

float Single(double v) {
  return v > std::numeric_limits<float>::max() ? std::numeric_limits<float>::infinity() : static_cast<float>(v);
}

void Raise(float* to, double v) { *to = std::max(*to, Single(v)); }

double Over(double error, double unit) { return error == 0 ? 0 : unit == 0 ? kInfinity : error / unit; }

void MeasureResult(const OpDiff& op, size_t row, double error, double distance, OpDistance* out) {
  if (DTypeTolerance(*op.thresholds, op.target[row].dtype) == 0) out->choices = true;
  const RoundOff round_off = RoundOffOf(op, row);
  Raise(&out->expected, Over(error, round_off.expected));
  Raise(&out->worst, Over(error, round_off.worst));
  Raise(&out->conditioned, distance / round_off.condition);
}

}  // namespace

std::string_view RulerVerdictText(RulerVerdict v) {
  switch (v) {
    case RulerVerdict::kNone: return "N/A";
    case RulerVerdict::kBitEqual: return "bit-equal";
    case RulerVerdict::kRoundOff: return "round-off";
    case RulerVerdict::kRewritten: return "rewritten";
    case RulerVerdict::kInherited: return "inherited";
    case RulerVerdict::kSuspicious: return "suspicious";
    case RulerVerdict::kBug: return "bug";
  }
  return "";
}

void RulerCounts::Add(RulerVerdict v) { ++Of(v); }

void RulerCounts::Withdraw(RulerVerdict v) {
  --Of(v);
  ++none;
}

void RulerCounts::Inherit(RulerVerdict v) {
  --Of(v);
  ++inherited;
}

uint64_t& RulerCounts::Of(RulerVerdict v) {
  uint64_t* const counts[] = {&none, &bit_equal, &round_off, &rewritten, &inherited, &suspicious, &bug};
  return *counts[static_cast<size_t>(v)];
}

namespace {

/// Of tensors whose checksums differ: their statistics say by how much. Where these are equal, the difference is too
/// small to be seen in them, or the same elements stand in other places.
double ChecksumError(const ItemView& a, const ItemView& b, Against against) {
  // Zeros of either sign are not a difference, as far as the dump shows that there is nothing else.
  const auto zero = [](const ItemView& v) { return v.stats[kNorm].IsNumber() && v.stats[kNorm].AsDouble() == 0; };
  if (a.checksum == b.checksum || (zero(a) && zero(b))) return 0;
  const auto measured = [](const ItemView& v) { return IsTensorItem(v) && !v.stats[kMax].IsNone(); };
  if (!measured(a) || !measured(b)) return kInfinity;
  const double error = StatisticsError(a, b, against);
  // Those of two dtypes differ whatever the values are.
  return SameDType(a.dtype, b.dtype) ? std::max(error, kLeastError) : error;
}

double ErrorAgainst(const OpDiff& op, size_t row, CompareMode mode, Against against) {
  const ItemView* partner = PartnerOf(op, row);
  if (!partner || IsNoValue(op, row)) return 0;
  const ItemView &a = op.target[row], &b = *partner;
  if (a.shape != b.shape && !op.rows[row].shapes_fit && !(IsOtherCall(op) && ShapesFit(a, b))) return kInfinity;
  if (mode == CompareMode::kChecksum) return ChecksumError(a, b, against);
  // Values say more than their statistics, which stand for tensors that could not be read.
  if (mode == CompareMode::kTensor && op.tensors[row].error >= 0 && !FilledOtherwise(a, b)) {
    return against == Against::kGolden ? op.tensors[row].golden_error : op.tensors[row].error;
  }
  return StatisticsError(a, b, against);
}

/// Its values should have been there.
bool IsUnread(const OpDiff& op, size_t row, CompareMode mode) {
  return mode == CompareMode::kTensor && op.tensors[row].outcome == TensorOutcome::kUnreadable;
}

}  // namespace

double RowError(const OpDiff& op, size_t row, CompareMode mode) {
  return ErrorAgainst(op, row, mode, Against::kLarger);
}

double ShownError(const OpDiff& op, size_t row, CompareMode mode) {
  return ErrorAgainst(op, row, mode, Against::kGolden);
}

ShownErrors ShownErrorsOf(const OpDiff& op, CompareMode mode) {
  ShownErrors out;
  const bool other_call = IsOtherCall(op);
  for (size_t i = 0; i < op.rows_used; ++i) {
    if (!PartnerOf(op, i) || !IsTensorItem(op.target[i])) continue;
    if (other_call && IsArgumentOfCall(op.op, op.target[i].state)) continue;
    double& side = IsResult(op.target[i].state) ? out.output : out.input;
    side = std::max(side, ShownError(op, i, mode));
  }
  return out;
}

double DTypeTolerance(const Thresholds& t, std::string_view dtype) { return t.ToleranceOf(ParseDType(dtype)); }

double OpTolerance(const OpDiff& op) {
  double out = 0;
  for (size_t i = 0; i < op.rows_used; ++i) out = std::max(out, DTypeTolerance(*op.thresholds, op.target[i].dtype));
  for (size_t i = 0; i < op.golden_used; ++i) out = std::max(out, DTypeTolerance(*op.thresholds, op.golden[i].dtype));
  // A module of another class in the same place computes the same with other precision: quantised, or with adapters;
  // but for one that is another program.
  const bool other = !op.cross && out > 0 && !op.golden_op.empty() && IsModuleName(op.op) &&
                     ApiOrClassOf(op.op) != ApiOrClassOf(op.golden_op) && !IsOtherCall(op);
  return other ? std::max(out, op.thresholds->tolerance_bfloat16) : out;
}

double RowDistance(const OpDiff& op, size_t row, CompareMode mode, double tolerance) {
  const double error = RowError(op, row, mode);
  if (error == 0) return 0;
  const ItemView &a = op.target[row], &b = *PartnerOf(op, row);
  const double own = std::max(DTypeTolerance(*op.thresholds, a.dtype), DTypeTolerance(*op.thresholds, b.dtype));
  // Limits of a dtype travel as Python's floats.
  const bool scalar = a.dtype == "<class 'float'>" && b.dtype == a.dtype;
  if (own == 0 && !scalar) tolerance = 0;
  if (own > 0 && a.state == ItemState::kParameter) tolerance = own;
  // Both implementations, or layouts, were given the same weights: rounding of elements hardly shows in their norm. Of
  // layouts they may have gone through steps of the optimizer, which rounds halves.
  const bool halves = op.resplit && tolerance > op.thresholds->tolerance_float32;
  const double copied = op.implementations ? kCopiedNorm : tolerance * kStepped;
  if ((op.implementations || halves) && own > 0 && a.state == ItemState::kParameter && SameDType(a.dtype, b.dtype)) {
    const double scale = std::max(Magnitude(a.stats[kNorm]), Magnitude(b.stats[kNorm]));
    return std::max(Over(error, tolerance), Over(StatError(a, b, kNorm, scale), std::min(tolerance, copied)));
  }
  return Over(error, tolerance);
}

bool DTypeChanges(const OpDiff& op, size_t i) {
  const ItemView* b = PartnerOf(op, i);
  if (!b) return false;
  const ItemView& a = op.target[i];
  if (op.cross && IsInteger(ParseDType(a.dtype)) && IsInteger(ParseDType(b->dtype))) return false;
  return !SameDType(a.dtype, b->dtype) && a.shape == b->shape && StartsWith(a.shape, "[") &&
         !StartsWith(a.dtype, "<class") && !StartsWith(b->dtype, "<class");
}

namespace {

bool ItemDiffers(const OpDiff& op, size_t i, CompareMode mode) {
  if (op.cross) return SettingDiffers(op, op.target[i], PartnerOf(op, i));
  const ItemView& a = op.target[i];
  if (a.state != ItemState::kInput && a.state != ItemState::kKwarg) return false;
  const ItemView* b = PartnerOf(op, i);
  if (!b && IsNull(a)) {
    const ItemView* other = AtPlaceOf(op, a);
    return op.matched && other && !IsNull(*other) && !SaysHowOnly(*other);
  }
  if (!b) return op.matched && !SaysTheSame(op, a, false);
  if (IsTensorItem(a) != IsTensorItem(*b)) return IsNull(a) || IsNull(*b);
  if (IsTensorItem(a)) return false;
  const StatValue &x = a.stats[kMax], &y = b->stats[kMax];
  if (mode == CompareMode::kChecksum && (a.checksum == b->checksum || !x.IsNumber() || !y.IsNumber()))
    return a.checksum != b->checksum;
  if (a.shape != b->shape) return true;
  if (IsDTypeText(x) && IsDTypeText(y)) return false;
  if (BothFills(x, y)) return false;
  if (!x.IsNumber() || !y.IsNumber()) {
    const auto cell = DiffStats(x, y).diff_cell;
    return cell != StatDiff::Cell::kZero && cell != StatDiff::Cell::kNA;
  }
  const double p = x.AsDouble(), q = y.AsDouble();
  if (p == q || (std::isnan(p) && std::isnan(q))) return false;
  const bool computed =
      a.dtype == "<class 'float'>" && b->dtype == a.dtype;  // numbers from tensors carry their rounding
  return !computed || std::fabs(p - q) > OpTolerance(op) * std::max(std::fabs(p), std::fabs(q));
}

}  // namespace

bool ArgumentDiffers(const OpDiff& op, size_t i, CompareMode mode) {
  return ItemDiffers(op, i, mode) && !IsOtherCall(op);
}

namespace {

/// Of the gradients of a module's parameters on both sides.
double LargestGradient(const OpDiff& op) {
  double out = 0;
  for (size_t i = 0; i < op.rows_used; ++i) {
    const ItemView* partner = PartnerOf(op, i);
    if (op.target[i].state != ItemState::kParameterGrad || !partner) continue;
    out = std::max({out, Amplitude(op.target[i]), Amplitude(*partner)});
  }
  return out;
}

bool IsSingle(const ItemView& item) { return item.shape == "[]"; }
/// At most two; Max and Min are all of them.
bool HasFewElements(const ItemView& item) { return IsSingle(item) || item.shape == "[1]" || item.shape == "[2]"; }

/// A gradient that is zero but for the rounding of sums that cancel out: its digits say nothing.
bool IsRoundedZero(const OpDiff& op, size_t row, double largest) {
  const ItemView* partner = PartnerOf(op, row);
  if (op.target[row].state != ItemState::kParameterGrad || !partner) return false;
  const double own = std::max(Amplitude(op.target[row]), Amplitude(*partner));
  return own < largest && own <= OpTolerance(op) * largest;
}

}  // namespace

/// How far two numbers with more digits than people write are apart: a factor made of a norm carries its rounding.
/// Infinite for everything else.
double ComputedError(const OpDiff& op, size_t row) {
  const ItemView* partner = PartnerOf(op, row);
  const StatValue& x = op.target[row].stats[kMax];
  if (!partner || !x.IsNumber() || !partner->stats[kMax].IsNumber()) return kInfinity;
  const double p = x.AsDouble(), q = partner->stats[kMax].AsDouble();
  const bool computed = op.target[row].dtype == "<class 'float'>" && partner->dtype == op.target[row].dtype;
  if (!computed || IsWritten(p) || IsWritten(q)) return kInfinity;
  return std::fabs(p - q) / std::max(std::fabs(p), std::fabs(q));
}

/// The argument in `row`, which differs, if it is a choice: sizes that come with a shape are none.
void NoteSetting(const OpDiff& op, size_t row, OpDistance* out) {
  const ItemView* partner = PartnerOf(op, row);
  if (!partner || op.target[row].shape != partner->shape || op.target[row].IsProcessGroup()) return;
  const StatValue &x = op.target[row].stats[kMax], &y = partner->stats[kMax];
  if (!x.IsNumber() || !y.IsNumber()) {
    out->setting = true;
    return;
  }
  const double p = x.AsDouble(), q = y.AsDouble();
  // Whole numbers count: sizes, places, turns of a loop.
  const bool whole = op.target[row].dtype == "<class 'int'>" && partner->dtype == "<class 'int'>";
  if (whole || !IsWritten(p) || !IsWritten(q)) return;
  out->setting = true;
  if (q != 0) out->setting_ratio = Single(p / q);
}

/// Whether the statistics agree of values that do not.
bool IsReordered(const OpDiff& op, size_t row, CompareMode mode) {
  if (mode == CompareMode::kStatistics) return false;
  const ItemView* partner = PartnerOf(op, row);
  const double room = std::max(DTypeTolerance(*op.thresholds, partner->dtype), kLeastError);
  return op.target[row].shape == partner->shape && StatisticsError(op.target[row], *partner, Against::kLarger) <= room;
}

/// Statistics of infinities are infinite: neither how many there are nor where.
bool HidesInfinities(const ItemView& a, const ItemView& b) {
  const StatValue &x = a.stats[kNorm], &y = b.stats[kNorm];
  const auto endless = [](const StatValue& v) {
    return v.IsNanOrInf() || (v.IsNumber() && !std::isfinite(v.AsDouble()));
  };
  return endless(x) && endless(y);
}

/// Of an input: what hides its other elements in its statistics.
void NoteHidden(const ItemView& a, const ItemView& b, bool* infinite, OpDistance* out) {
  *infinite = *infinite || HidesInfinities(a, b);
  out->filled = out->filled || (HoldsFill(a) && HoldsFill(b));
  out->mask = out->mask || (HoldsBoth(a) && HoldsBoth(b));
}

/// Whatever a softmax is given, its rows add up to 1: where its Mean differs, the op itself computes wrongly.
bool AddsUpToOne(const OpDiff& op, const ItemView& a, const ItemView& b, double tolerance) {
  const StatValue &x = a.stats[kMean], &y = b.stats[kMean];
  if (ArithmeticOf(op.op) != Arithmetic::kSoftmax || !x.IsNumber() || !y.IsNumber()) return false;
  return std::abs(x.AsDouble() - y.AsDouble()) <= tolerance * std::abs(y.AsDouble());
}

/// Extremes are single elements, whose rounding adds up with depth; a norm averages over many.
void NoteNorm(const OpDiff& op, const ItemView& a, const ItemView& b, OpDistance* out) {
  if (!op.resplit || DTypeTolerance(*op.thresholds, a.dtype) == 0 || ElementsOfShape(a.shape) < kAverages) return;
  const double error = StatError(a, b, kNorm, std::max(Magnitude(a.stats[kNorm]), Magnitude(b.stats[kNorm])));
  Raise(IsResult(a.state) ? &out->norm_output : &out->norm_input, error);
}

/// Arguments that the golden run alone gives.
void NoteArgumentsOfGolden(const OpDiff& op, OpDistance* out) {
  for (size_t g = 0; g < op.golden_used; ++g) {
    const ItemView& item = op.golden[g];
    if (op.cross && (op.golden_taken[g] || !SettingDiffers(op, item, nullptr))) continue;
    const bool argument = item.state == ItemState::kInput || item.state == ItemState::kKwarg;
    const bool alone = argument && !op.golden_taken[g] && !IsNull(item) && !SaysHowOnly(item);
    if (!alone || (!op.cross && SaysTheSame(op, item, true))) continue;
    out->argument = true;
    out->one_sided = out->one_sided || IsTensorItem(item);
    out->input = out->computed = Single(kInfinity);
  }
}

OpDistance DistanceOf(const OpDiff& op, CompareMode mode, const std::function<bool(size_t row)>& counts) {
  OpDistance out;
  const double tolerance = OpTolerance(op);
  out.tolerance = Single(tolerance);
  out.matched = op.matched;
  out.other_call = IsOtherCall(op);
  const double largest_gradient = LargestGradient(op);
  bool reordered = false, otherwise = false;  // inputs of which the bits differ
  bool masked = false, sums = true;           // an input holds infinities; the results that differ add up to the same
  for (size_t i = 0; i < op.rows_used; ++i) {
    if (counts && !counts(i)) continue;
    if (IsRoundedZero(op, i, largest_gradient)) continue;
    if (IsNoValue(op, i)) {
      out.unwritten = out.unwritten || (IsUnwrittenInput(op, i));
      continue;
    }
    const ItemView& item = op.target[i];
    if (out.other_call && IsArgumentOfCall(op.op, item.state)) continue;
    const bool result = IsResult(item.state);
    out.dtypes = out.dtypes || DTypeChanges(op, i);
    if (!result && ArgumentDiffers(op, i, mode)) {
      out.argument = true;
      Raise(&out.computed, ComputedError(op, i));
      out.input = Single(kInfinity);
      const ItemView* other = AtPlaceOf(op, item);
      out.one_sided = out.one_sided || IsTensorItem(item) != (other && IsTensorItem(*other));
      if (!out.setting) NoteSetting(op, i, &out);
      continue;
    }
    const ItemView* partner = PartnerOf(op, i);
    if (!partner) continue;
    const bool tensor = IsTensorItem(item);
    out.values = out.values || (tensor && item.stats[kMax].IsNumber());
    (result ? out.has_output : out.has_input) |= tensor;
    const double error = RowError(op, i, mode);
    out.unread = out.unread || IsUnread(op, i, mode);
    if (result && error > 0 && CancelsOut(op, i)) {
      Raise(&out.cancelled, std::max(Amplitude(item), Amplitude(*partner)));
      continue;
    }
    const bool by_statistics =
        mode == CompareMode::kStatistics || (mode == CompareMode::kTensor && op.tensors[i].error < 0);
    if (tensor && !result && by_statistics) NoteHidden(item, *partner, &masked, &out);
    if (tensor && result && error > 0) sums = sums && AddsUpToOne(op, item, *partner, tolerance);
    if (tensor) Raise(result ? &out.output_error : &out.input_error, error);
    if (tensor) NoteNorm(op, item, *partner, &out);
    if (tensor && !result && item.shape != partner->shape && !op.rows[i].shapes_fit) {
      out.shapes = true;
      const double golden = ElementsOfShape(partner->shape);
      if (out.split == 0 && golden > 0) out.split = Single(ElementsOfShape(item.shape) / golden);
    }
    if (tensor && !result && error > 0) (IsReordered(op, i, mode) ? reordered : otherwise) = true;
    const double distance = RowDistance(op, i, mode, tolerance);
    out.few = out.few && (!tensor || HasFewElements(item));
    if (tensor && DTypeTolerance(*op.thresholds, item.dtype) > 0 && !IsSingle(item))
      Raise(&out.amplitude, std::max(Amplitude(item), Amplitude(*partner)));
    out.parameter = out.parameter || (distance > 1 && IsKept(op.op, item, *partner));
    const bool weight = item.state == ItemState::kParameter || (tensor && !result && item.suffix != ".input.0");
    out.rounded_parameter = out.rounded_parameter || (weight && distance > 0 && distance <= 1);
    Raise(result ? &out.output : &out.input, distance);
    const bool choice = tensor && DTypeTolerance(*op.thresholds, item.dtype) == 0;
    if (!result && choice && error > 0) out.chosen = true;
    if (!result && !choice) Raise(&out.rounded, distance);
    if (result && error > 0) MeasureResult(op, i, error, distance, &out);
    if (mode == CompareMode::kChecksum && !result) out.blind = out.blind || item.checksum == "0x0000000000000000";
  }
  if (op.matched && op.rows_used > 0 && mode != CompareMode::kChecksum && !out.other_call)
    NoteArgumentsOfGolden(op, &out);
  out.reordered = reordered && !otherwise;
  out.masked = masked && sums;
  return out;
}

RowRuler MeasureRow(const OpDiff& op, size_t row, CompareMode mode, const OpDistance& distance,
                    const RulerContext& context) {
  RowRuler out;
  const ItemView& item = op.target[row];
  const ItemView* partner = PartnerOf(op, row);
  if (distance.other_call && IsArgumentOfCall(op.op, item.state)) return out;
  if (!partner || IsNoValue(op, row) || (!IsTensorItem(item) && !ArgumentDiffers(op, row, mode))) return out;
  out.error = RowError(op, row, mode);
  const double dtype =
      std::max(DTypeTolerance(*op.thresholds, item.dtype), DTypeTolerance(*op.thresholds, partner->dtype));
  const bool result = IsResult(item.state);
  if (out.error == 0 && !ArgumentDiffers(op, row, mode)) {
    // Statistics that agree do not say that the values do, where they should have been there.
    out.verdict = IsUnread(op, row, mode) ? RulerVerdict::kNone : RulerVerdict::kBitEqual;
    return out;
  }
  if (result && CancelsOut(op, row)) {
    out.verdict = RulerVerdict::kRoundOff;
    return out;
  }
  const RoundOff round_off = result ? RoundOffOf(op, row) : RoundOff();
  const bool exact = result && distance.input_error == 0 && !distance.argument && context.travelled == 0;
  // What reached the op is rounded, and the op enlarges that. What an input differs by does not excuse the input
  // itself.
  const double reached = result && std::isfinite(distance.input_error) ? 10.0 * distance.input_error : 0.0;
  const double travelled = std::max({static_cast<double>(context.travelled), dtype, reached});
  double unit = exact ? round_off.expected : dtype == 0 ? 0 : travelled * (result ? round_off.condition : 1);
  unit = std::max(unit, 2.0 * static_cast<double>(context.calibrated));
  out.units = Over(out.error, unit);
  if (out.units <= 1) {
    out.verdict = distance.input > 1 && result ? RulerVerdict::kInherited : RulerVerdict::kRoundOff;
  } else if (context.verdict == RulerVerdict::kBug || context.verdict == RulerVerdict::kSuspicious) {
    // The op is to blame, but for a value that it was given its results are not.
    const bool own = !result || distance.rounded <= 1;
    out.verdict = own ? context.verdict : RulerVerdict::kInherited;
  } else if (context.verdict == RulerVerdict::kRoundOff || context.verdict == RulerVerdict::kInherited) {
    out.verdict = RulerVerdict::kInherited;
  } else {
    out.verdict = RulerVerdict::kNone;  // by their order the ops pair otherwise: this row stands against another op's
  }
  return out;
}

void MeasureRows(CompareMode mode, const OpDistance& distance, const RulerContext& context, OpDiff* op) {
  op->ruler.resize(op->rows_used);
  for (size_t i = 0; i < op->rows_used; ++i) {
    RowRuler row;
    if (!HasArbitraryValues(op->op)) row = MeasureRow(*op, i, mode, distance, context);
    const double shown = row.error == 0 ? 0 : ShownError(*op, i, mode);
    op->ruler[i] = {shown, row.units, row.verdict};
  }
}

}  // namespace msprobe
