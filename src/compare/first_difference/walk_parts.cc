#include "compare/first_difference/walk_parts.h"

#include <algorithm>
#include <cmath>

#include "ops/op_name.h"
#include "ops/op_traits.h"

namespace msprobe {

bool IsComplete(const WalkInput& in) {
  const OpList& ops = in.pair.target->ops();
  for (size_t i = ops.size(); i-- > 0;) {
    if (in.plan.golden_of[i] != kNoOp && !HasArbitraryValues(ops.NameAt(i))) return in.distances[i].matched;
  }
  return true;
}

std::optional<size_t> GivenOnOneSide(const WalkInput& in, const FirstDifference& found, size_t seen) {
  using enum FirstDifference::Kind;
  std::optional<size_t> out;
  const bool lone = found.kind == kMissingOp || found.kind == kExtraOp;
  if ((!lone && found.kind != kInput && found.kind != kShape) || in.plan.cross || in.plan.fused) return out;
  const size_t op = found.kind == kMissingOp ? seen : found.op;
  in.target_tree.ForEachAround(in.pair.target->ops().NameAt(op), [&](std::string_view name) {
    const auto at = in.pair.target->FindOp(name);
    if (!at || !in.distances[*at].matched || !in.distances[*at].one_sided) return true;
    // Of another batch all arguments are others.
    if (found.kind != kShape || !in.distances[*at].shapes) out = *at;
    return true;
  });
  return out;
}

bool IsExactInOtherClass(const WalkInput& in, size_t op) {
  const std::string_view name = in.pair.target->ops().NameAt(op);
  if (in.plan.cross || in.plan.golden_of[op] == kNoOp || !IsModuleName(name)) return false;
  const bool exact =
      static_cast<double>(in.distances[op].output_error) <= in.pair.options.thresholds->tolerance_float32;
  return exact && ApiOrClassOf(name) != ApiOrClassOf(in.pair.golden->ops().NameAt(in.plan.golden_of[op]));
}

bool IsOfNumbers(std::string_view name, const OpDistance& d) {
  return !d.has_input && d.values && !d.argument && IsModuleName(name) &&
         ParseOpName(name).direction == OpDirection::kForward;
}

bool OnlyChecksumsDiffer(const WalkInput& in, const OpDistance& d, float error) {
  constexpr float kSameStatistics = 0x1p-22f;
  return in.pair.options.mode == CompareMode::kChecksum && error <= std::max(d.tolerance, kSameStatistics);
}

bool FollowsSplit(float ratio, float split) {
  const auto is = [&](float r) { return ratio > 0 && std::fabs(ratio - r) <= 1e-3f * r; };
  return is(split) || is(1 / split) || is(std::sqrt(split)) || is(std::sqrt(1 / split));
}

}  // namespace msprobe
