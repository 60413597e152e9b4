#include "compare/round_off/settings.h"

#include <cmath>

#include "base/text.h"
#include "compare/round_off/at_place.h"
#include "ops/framework_names.h"
#include "ops/op_name.h"

namespace msprobe {
namespace {

/// Dimensions of the first tensor of an op.
int64_t RankOf(const std::vector<ItemView>& items, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (items[i].tensor && items[i].dims && items[i].dims->IsArray())
      return static_cast<int64_t>(items[i].dims->Items().size());
  }
  return 0;
}

}  // namespace

bool SettingDiffers(const OpDiff& op, const ItemView& a, const ItemView* b) {
  constexpr std::string_view kInput = ".input.";
  if (a.state != ItemState::kKwarg || !StartsWith(a.suffix, kInput)) return false;
  const CommonArgument common = CommonArgumentOf(std::string_view(a.suffix).substr(kInput.size()));
  const StatValue& x = a.stats[kMax];
  if (common.name.empty() || a.tensor) return false;
  if (!b) return !common.otherwise.empty() && x.IsText() && x.text != common.otherwise;
  const StatValue& y = b->stats[kMax];
  if (x.IsText() && y.IsText()) return x.text != y.text;
  if (!x.IsNumber() || !y.IsNumber() || b->tensor) return false;
  if (!x.IsInteger() || !y.IsInteger()) return std::fabs(x.AsDouble() - y.AsDouble()) > 1e-6 * std::fabs(y.AsDouble());
  const int64_t rank = RankOf(op.target, op.rows_used);
  const auto from_front = [rank](const StatValue& v) {
    return v.AsDouble() < 0 ? v.AsDouble() + static_cast<double>(rank) : v.AsDouble();
  };
  return rank == RankOf(op.golden, op.golden_used) && from_front(x) != from_front(y);
}

size_t OtherOperand(const OpDiff& op) {
  const NameParts name = ParseOpName(op.op);
  const bool operators = op.cross && name.direction == OpDirection::kForward && ApiOf(op.op).starts_with("__") &&
                         ApiOf(op.op) == ApiOf(op.golden_op);
  const auto is_number = [](const ItemView& item) { return !item.tensor && item.stats[kMax].IsNumber(); };
  const auto is_many = [](const ItemView& item) { return item.tensor && ElementsOfShape(item.shape) > 1; };
  for (size_t i = 0; operators && i < op.rows_used; ++i) {
    const ItemView& a = op.target[i];
    const ItemView* b = a.state == ItemState::kInput ? AtPlaceOf(op, a) : nullptr;
    if (!b) continue;
    if ((is_number(a) && is_many(*b)) || (is_many(a) && is_number(*b))) return i;
    const double x = is_number(a) ? a.stats[kMax].AsDouble() : 0, y = is_number(*b) ? b->stats[kMax].AsDouble() : 0;
    if (is_number(a) && is_number(*b) && std::fabs(x - y) > 1e-6 * std::fabs(y)) return i;
  }
  return op.rows_used;
}

bool IsWritten(double v) {
  if (v == 0 || !std::isfinite(v)) return true;
  const double scale = std::pow(10.0, 5 - std::floor(std::log10(std::fabs(v))));
  return std::fabs(v * scale - std::round(v * scale)) <= 6e-8 * std::fabs(v * scale);
}

}  // namespace msprobe
