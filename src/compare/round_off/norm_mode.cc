#include "compare/round_off/norm_mode.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "base/text.h"
#include "compare/round_off/no_value.h"
#include "ops/op_name.h"

namespace msprobe {
namespace {

/// Of the root mean square of what a norm gives.
constexpr double kCentred = 1e-5, kNotCentred = 1e-3;

NormMode ModeOf(std::string_view name, std::span<const ItemView> items) {
  const std::string_view type = ApiOrClassOf(name);
  if (!IsModuleName(name) || !Contains(type, "BatchNorm") || ParseOpName(name).direction != OpDirection::kForward)
    return NormMode::kUnknown;
  const ItemView *output = nullptr, *offsets = nullptr;
  for (const ItemView& item : items) {
    if (item.suffix == ".output.0") output = &item;
    if (item.suffix == ".parameters.bias" || item.suffix == ".parameters.beta") offsets = &item;
  }
  const auto known = [](const ItemView* item) {
    return item->stats[kMean].IsNumber() && item->stats[kNorm].IsNumber() && Contains(item->dtype, "loat32");
  };
  if (output == nullptr || offsets == nullptr || !known(output) || !known(offsets)) return NormMode::kUnknown;
  const double size = output->stats[kNorm].AsDouble() / std::sqrt(ElementsOfShape(output->shape));
  const double off = std::fabs(output->stats[kMean].AsDouble() - offsets->stats[kMean].AsDouble());
  if (!(size > 0) || !std::isfinite(off)) return NormMode::kUnknown;
  return off <= kCentred * size ? NormMode::kBatch : off >= kNotCentred * size ? NormMode::kKept : NormMode::kUnknown;
}

}  // namespace

NormModes NormModesOf(const OpDiff& op) {
  NormModes out;
  out.target = ModeOf(op.op, {op.target.data(), op.rows_used});
  if (out.target != NormMode::kUnknown) out.golden = ModeOf(op.golden_op, {op.golden.data(), op.golden_used});
  return out;
}

bool IsRunningStatistic(std::string_view parameter) {
  const std::string_view last = parameter.substr(parameter.rfind('.') + 1);
  return last == "moving_mean" || last == "moving_variance" || last == "running_mean" || last == "running_var";
}

bool TakesRunningStatistic(std::string_view op, std::string_view item) {
  const std::string_view api = ApiOf(op);
  return (item == ".input.1" || item == ".input.2") && (api == "batch_norm" || api == "instance_norm") &&
         !IsModuleName(op) && ParseOpName(op).direction == OpDirection::kForward;
}

bool IsKept(std::string_view op, const ItemView& a, const ItemView& b) {
  const bool buffer = !a.Buffer().empty() || !b.Buffer().empty() || TakesRunningStatistic(op, a.suffix);
  return a.state == ItemState::kParameter || (!IsResult(a.state) && buffer);
}

}  // namespace msprobe
