#include "compare/describe/item_difference.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "compare/describe/six_digits.h"
#include "compare/round_off/at_place.h"
#include "compare/round_off/no_value.h"
#include "compare/round_off/norm_mode.h"
#include "compare/round_off/other_call.h"
#include "compare/round_off/ruler.h"
#include "compare/round_off/settings.h"
#include "ops/argument_names.h"
#include "ops/op_name.h"

namespace msprobe {
namespace {

std::string Percent(double v) { return fmt::format("{:.3g} %", v); }

/// As a person writes it; tables have "Nan".
std::string Text(const StatValue& v) {
  std::string out;
  v.AppendText(&out);
  return out == "Nan" ? "NaN" : out;
}

/// Norm first: it sums up the tensor.
constexpr std::array kTold{kNorm, kMax, kMin, kMean};
constexpr std::array<const char*, kStatCount> kNames{"Max", "Min", "Mean", "Norm"};

ItemDifference OfStat(const OpDiff& op, size_t row, Stat k, double percent) {
  const DiffRow& r = op.rows[row];
  return {kNames[k], Text(op.target[row].stats[k]), Text(op.golden[static_cast<size_t>(r.golden)].stats[k]), percent};
}

bool LooksEqual(const ItemDifference& d) { return SixDigits(d.target) == SixDigits(d.golden); }

/// The statistic that tells most of a row: its largest relative error, or the difference in kind. One that people read
/// as equal leads only where they all are.
ItemDifference StatisticOf(const OpDiff& op, size_t row) {
  const DiffRow& r = op.rows[row];
  ItemDifference equal{"values", {}, {}, -1};
  for (const Stat k : kTold) {
    const StatDiff& d = r.diff[k];
    if (d.diff_cell == StatDiff::Cell::kZero || d.diff_cell == StatDiff::Cell::kNA) continue;
    if (d.rel_cell != StatDiff::Cell::kNumber) return OfStat(op, row, k, -1);
    // Below this a norm alone says nothing; the others may.
    if (k == kNorm && d.rel < 1e-3 && r.diff[kMax].rel > d.rel) continue;
    ItemDifference out = OfStat(op, row, k, d.rel);
    if (!LooksEqual(out)) return out;
    if (equal.target.empty()) equal = std::move(out);
  }
  return equal;
}

/// The value of an argument, or what stands for it.
std::string ArgumentText(const ItemView& item) {
  const bool shaped = item.shape != "[]" && item.shape != "N/A" && (item.tensor || item.stats[kMax].IsNone());
  return shaped ? item.shape : Text(item.stats[kMax]);
}

constexpr const char* kNotGiven = "(not given)";

ItemDifference OfTypes(const ItemView& a, const ItemView& b) {
  return {"dtype", std::string(a.dtype), std::string(b.dtype), -1};
}

}  // namespace

ItemDifference DifferenceOf(const OpDiff& op, size_t row, CompareMode mode) {
  const DiffRow& r = op.rows[row];
  const ItemView &a = op.target[row], &b = op.golden[static_cast<size_t>(r.golden)];
  if (a.shape != b.shape && !r.shapes_fit && !(IsOtherCall(op) && ShapesFit(a, b)))
    return {"shape", a.shape, b.shape, -1};
  if (mode == CompareMode::kChecksum) return {"checksum", a.checksum, b.checksum, -1};
  if (mode == CompareMode::kTensor && op.tensors[row].error > 0 && std::isfinite(op.tensors[row].golden_error))
    return {"values", {}, {}, 100 * op.tensors[row].golden_error};
  return StatisticOf(op, row);
}

std::string DetailOf(const ItemDifference& d) {
  if (d.what == "values") return d.percent < 0 ? "values differ" : "values differ by " + Percent(d.percent);
  if (d.percent >= 0) return d.what + " differs by " + Percent(d.percent);
  return d.what + " " + SixDigits(d.target) + " against " + SixDigits(d.golden);
}

bool IsReordered(const OpDiff& op, size_t row) {
  constexpr double kLastDigits = 1e-6;
  const ItemView* partner = PartnerOf(op, row);
  if (!partner || !IsTensorItem(op.target[row]) || op.target[row].shape != partner->shape) return false;
  const auto number = [](const ItemView& item, Stat k) { return item.stats[k].IsNumber(); };
  for (const Stat k : {kMax, kMin, kMean, kNorm}) {
    if (!number(op.target[row], k) || !number(*partner, k)) return false;
  }
  const auto at = [&](const ItemView& item, Stat k) { return item.stats[k].AsDouble(); };
  const ItemView& own = op.target[row];
  const double size = std::max(std::fabs(at(own, kMax)), std::fabs(at(own, kMin)));
  const bool extremes = at(own, kMax) == at(*partner, kMax) && at(own, kMin) == at(*partner, kMin);
  const double mean = std::fabs(at(own, kMean) - at(*partner, kMean)), norm = at(own, kNorm) - at(*partner, kNorm);
  const bool last = mean <= kLastDigits * size && std::fabs(norm) <= kLastDigits * at(*partner, kNorm);
  return extremes && at(own, kMax) != at(own, kMin) && last && (mean != 0 || norm != 0);
}

std::string ExchangedWith(const OpDiff& op, size_t row) {
  const ItemView* partner = PartnerOf(op, row);
  if (!partner || IsResult(op.target[row].state)) return {};
  const std::string own = LooksOf(op.target[row]), golden = LooksOf(*partner);
  if (own.empty() || golden.empty() || own == golden) return {};
  for (size_t i = 0; i < op.rows_used; ++i) {
    const ItemView* other = PartnerOf(op, i);
    if (i == row || !other || op.target[i].state != op.target[row].state) continue;
    if (LooksOf(op.target[i]) == golden && LooksOf(*other) == own) return op.target[i].suffix;
  }
  return {};
}

std::string LooksOf(const ItemView& item) {
  if (!StartsWith(item.shape, "[") || item.shape == "[]" || item.stats[kMax].IsNone()) return {};
  std::string most, least, out = item.shape;
  item.stats[kMax].AppendText(&most);
  item.stats[kMin].AppendText(&least);
  if (most == least) return {};
  out.append(" ").append(item.dtype);
  for (const StatValue& stat : item.stats) stat.AppendText(&(out += ' '));
  return out;
}

std::string_view NameOfArgument(std::string_view op, std::span<const ItemView> items, std::string_view item) {
  // Functions of MindSpore have the same names and arguments of their own.
  const auto of_pytorch = [](const ItemView& one) { return StartsWith(one.dtype, "torch."); };
  if (IsModuleName(op) || ParseOpName(op).direction != OpDirection::kForward) return {};
  return std::ranges::any_of(items, of_pytorch) ? ArgumentName(ApiOf(op), item) : std::string_view();
}

void SetItem(const OpDiff& diff, const ItemView& item, FirstDifference* out) {
  out->item = item.suffix;
  out->argument = NameOfArgument(diff.op, {diff.target.data(), diff.rows_used}, out->item);
}

void DescribeArgument(const OpDiff& diff, CompareMode mode, FirstDifference* out) {
  for (size_t i = 0; i < diff.rows_used; ++i) {
    if (!ArgumentDiffers(diff, i, mode) && OtherOperand(diff) != i) continue;
    const int g = diff.rows[i].golden;
    SetItem(diff, diff.target[i], out);
    const ItemView* golden = g == kNoItem ? AtPlaceOf(diff, diff.target[i]) : &diff.golden[static_cast<size_t>(g)];
    const std::string own = ArgumentText(diff.target[i]), other = golden ? ArgumentText(*golden) : kNotGiven;
    out->difference = {"value", own, other, -1};
    if (golden && own == other) out->difference = OfTypes(diff.target[i], *golden);
    out->detail = "is " + out->difference.target + " against " + out->difference.golden;
    return;
  }
  for (size_t g = 0; g < diff.golden_used; ++g) {
    if (diff.golden_taken[g] || IsResult(diff.golden[g].state) || diff.golden[g].dtype == "N/A") continue;
    if (SaysTheSame(diff, diff.golden[g], true)) continue;
    SetItem(diff, diff.golden[g], out);
    out->difference = {"value", kNotGiven, ArgumentText(diff.golden[g]), -1};
    out->detail = "is there in the golden run only";
    return;
  }
}

void DescribeDType(const OpDiff& diff, FirstDifference* out) {
  for (size_t i = diff.rows_used; i-- > 0;) {
    if (!DTypeChanges(diff, i)) continue;
    SetItem(diff, diff.target[i], out);
    out->difference = OfTypes(diff.target[i], diff.golden[static_cast<size_t>(diff.rows[i].golden)]);
    out->detail = "is of " + out->difference.target + " against " + out->difference.golden;
  }
}

double InputErrorOf(const OpDiff& op, CompareMode mode, bool other_mode) {
  double worst = -1;
  for (size_t i = 0; i < op.rows_used; ++i) {
    if (IsResult(op.target[i].state) || (other_mode && IsRunningStatistic(op.target[i].suffix))) continue;
    worst = std::max(worst, ShownError(op, i, mode));
  }
  return worst;
}

}  // namespace msprobe
