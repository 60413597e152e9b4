#include "compare/round_off/no_value.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "compare/values/dtype_match.h"
#include "compare/values/not_read.h"
#include "ops/default_arguments.h"
#include "ops/framework_names.h"
#include "ops/op_name.h"
#include "ops/op_traits.h"
#include "tensor/kernels/dtype.h"

namespace msprobe {
namespace {

bool BothUnwritten(const OpDiff& op, size_t row) {
  const ItemView* partner = PartnerOf(op, row);
  return partner && op.target[row].unwritten && partner->unwritten;
}

/// At least a part of both.
bool BothPartly(const OpDiff& op, size_t row) {
  const auto is = [](const ItemView& item) { return item.unwritten || item.partly_unwritten; };
  const ItemView* partner = PartnerOf(op, row);
  return partner && is(op.target[row]) && is(*partner);
}

/// Neither run reads what is there.
bool NobodyReads(const OpDiff& op, size_t row) {
  if (!IsNotRead(op.op, op.target, op.rows_used, row)) return false;
  const int g = op.rows[row].golden;
  return g == kNoItem || IsNotRead(op.op, op.golden, op.golden_used, static_cast<size_t>(g));
}

/// A view or copy of memory that nobody wrote. Somebody may write it before its result is recorded, so that the result
/// need not be marked; where a part was written, the result may be that part.
bool MovesUnwritten(const OpDiff& op, size_t result) {
  if (op.rows_used == 0 || !BothPartly(op, 0) || ArithmeticOf(op.op) != Arithmetic::kCopy || NobodyReads(op, 0))
    return false;
  bool whole = true;
  for (size_t i = 0; i < op.rows_used; ++i) {
    if (!IsTensorItem(op.target[i]) || IsResult(op.target[i].state)) continue;
    if (!BothPartly(op, i)) return false;
    whole = whole && BothUnwritten(op, i);
  }
  return whole || BothPartly(op, result);
}

constexpr double kSameNorm = 1e-6;  // relative, of sums in another order

/// A flat buffer of one run has zeros behind what the other's holds, so that ranks can divide it: Norm, Max and Min are
/// those of the same elements.
bool IsPadded(const ItemView& a, const ItemView& b) {
  const auto is_flat = [](const ItemView& item) {
    return IsTensorItem(item) && item.shape.size() > 2 && !Contains(item.shape, ",");
  };
  if (a.shape == b.shape || !is_flat(a) || !is_flat(b) || !SameDType(a.dtype, b.dtype)) return false;
  for (const StatValue& stat : a.stats)
    if (!stat.IsNumber()) return false;
  for (const StatValue& stat : b.stats)
    if (!stat.IsNumber()) return false;
  const auto at = [](const ItemView& item, Stat k) { return item.stats[k].AsDouble(); };
  const bool more = ElementsOfShape(a.shape) > ElementsOfShape(b.shape);
  const ItemView &longer = more ? a : b, &shorter = more ? b : a;
  return at(longer, kMax) == std::max(at(shorter, kMax), 0.0) && at(longer, kMin) == std::min(at(shorter, kMin), 0.0) &&
         std::fabs(at(a, kNorm) - at(b, kNorm)) <= kSameNorm * std::fabs(at(b, kNorm));
}

std::string ValueText(const ItemView& item) {
  std::string out;
  item.stats[kMax].AppendText(&out);
  return out;
}

/// Of an argument that one run alone gives: the other has none in its place, or under its name.
bool IsAlone(const OpDiff& op, size_t i, bool of_golden) {
  return of_golden ? op.rows[i].golden == kNoItem : !op.golden_taken[i];
}

/// By its place in one run and by its name in the other, of a function whose arguments are not known.
bool IsGivenOtherwise(const OpDiff& op, const ItemView& item, const std::string& given, bool of_golden) {
  const auto& others = of_golden ? op.target : op.golden;
  const size_t used = of_golden ? op.rows_used : op.golden_used;
  const ItemState wanted = item.state == ItemState::kInput ? ItemState::kKwarg : ItemState::kInput;
  for (size_t i = 0; i < used; ++i) {
    if (others[i].state != wanted || !IsAlone(op, i, of_golden)) continue;
    if (others[i].dtype == item.dtype && ValueText(others[i]) == given) return true;
  }
  return false;
}

/// A dtype that what the call gives has in the other run, too, without being asked for.
bool NamesTheDType(const OpDiff& op, const ItemView& item) {
  if (item.state != ItemState::kKwarg || !item.suffix.ends_with(".dtype")) return false;
  bool same = false;
  for (size_t i = 0; i < op.rows_used; ++i) {
    if (op.target[i].state != ItemState::kOutput || op.rows[i].golden == kNoItem) continue;
    same = SameDType(op.target[i].dtype, op.golden[static_cast<size_t>(op.rows[i].golden)].dtype);
    if (!same) return false;
  }
  return same;
}

/// One mask in two forms: true where something counts, or numbers that are added to it.
bool IsMaskInOtherForm(const OpDiff& op, const ItemView& item, bool of_golden) {
  const auto& others = of_golden ? op.target : op.golden;
  const size_t used = of_golden ? op.rows_used : op.golden_used;
  const auto is_bool = [](const ItemView& one) { return ParseDType(one.dtype) == DType::kBool; };
  return IsTensorItem(item) &&
         std::any_of(others.begin(), others.begin() + static_cast<std::ptrdiff_t>(used), [&](const ItemView& other) {
           if (other.suffix != item.suffix || other.shape != item.shape || !IsTensorItem(other)) return false;
           const DType number = ParseDType(is_bool(item) ? other.dtype : item.dtype);
           return is_bool(item) != is_bool(other) && (IsFloating(number) || IsInteger(number));
         });
}

/// A bias so small that it rounds away where it is added: an optimizer that divides by the root of the second moment
/// moves what has no gradient but rounding, as that of a key in front of a softmax.
bool IsLostBias(const OpDiff& op, size_t row) {
  const ItemView& item = op.target[row];
  const ItemView* partner = PartnerOf(op, row);
  const bool bias = item.suffix == ".parameters.bias" || (item.suffix == ".input.2" && !IsModuleName(op.op));
  if (!bias || !partner || !Contains(op.op, ".forward") || IsResult(item.state) ||
      ArithmeticOf(op.op) != Arithmetic::kProduct)
    return false;
  if (!IsTensorItem(item) || item.shape != partner->shape || Contains(item.shape, ",")) return false;
  double result = 0;
  for (size_t i = 0; i < op.rows_used; ++i) {
    if (op.target[i].state == ItemState::kOutput) result = std::max(result, Amplitude(op.target[i]));
  }
  const double own = std::max(Amplitude(item), Amplitude(*partner));
  return std::isfinite(result) && own <= op.thresholds->ToleranceOf(ParseDType(item.dtype)) * result;
}

}  // namespace

bool IsResult(ItemState state) {
  return state == ItemState::kOutput || state == ItemState::kParameterGrad || state == ItemState::kDebug;
}

const ItemView* PartnerOf(const OpDiff& op, size_t row) {
  const int g = op.rows[row].golden;
  return g == kNoItem || op.rows[row].golden_only ? nullptr : &op.golden[static_cast<size_t>(g)];
}

bool IsTensorItem(const ItemView& item) {
  return StartsWith(item.shape, "[") && ParseDType(item.dtype) != DType::kUnknown;
}

bool SaysHowOnly(const ItemView& item) {
  return item.state == ItemState::kKwarg && SaysHow(std::string_view(item.suffix).substr(item.suffix.rfind('.') + 1));
}

bool SaysTheSame(const OpDiff& op, const ItemView& item, bool of_golden) {
  if (IsMaskInOtherForm(op, item, of_golden)) return true;
  if (IsModuleName(op.op) || IsTensorItem(item)) return false;
  // Functions of MindSpore have the same names and defaults of their own.
  const auto of_pytorch = [](const ItemView& one) { return StartsWith(one.dtype, "torch."); };
  if (std::none_of(op.target.begin(), op.target.begin() + static_cast<std::ptrdiff_t>(op.rows_used), of_pytorch))
    return false;
  const std::string_view function = ApiOf(op.op);
  const DefaultArgument* argument = FindDefaultArgument(function, item.suffix);
  const std::string given = ValueText(item);
  if (!argument) return NamesTheDType(op, item) || IsGivenOtherwise(op, item, given, of_golden);
  const auto& others = of_golden ? op.target : op.golden;
  const size_t used = of_golden ? op.rows_used : op.golden_used;
  for (size_t i = 0; i < used; ++i) {
    if (!IsAlone(op, i, of_golden) || IsResult(others[i].state) ||
        FindDefaultArgument(function, others[i].suffix) != argument)
      continue;
    return IsDefaultValue({{}, {}, given}, ValueText(others[i]));  // by its place at one side, by its name at the other
  }
  return IsDefaultValue(*argument, given);
}

bool IsNoValue(const OpDiff& op, size_t row) {
  const ItemView* partner = PartnerOf(op, row);
  if (op.target[row].other_part || (partner && partner->other_part)) return true;
  if (SaysHowOnly(op.target[row])) return true;
  if (partner && IsPadded(op.target[row], *partner)) return true;
  if (IsResult(op.target[row].state)) return BothUnwritten(op, row) || MovesUnwritten(op, row);
  return BothPartly(op, row) || NobodyReads(op, row) || IsLostBias(op, row);
}

bool IsUnwrittenInput(const OpDiff& op, size_t row) {
  return !IsResult(op.target[row].state) && BothPartly(op, row) && !NobodyReads(op, row);
}

}  // namespace msprobe
