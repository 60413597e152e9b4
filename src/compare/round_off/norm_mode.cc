#include "compare/round_off/norm_mode.h"

#include <cmath>
#include <span>

#include "base/text.h"
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

}  // namespace msprobe
