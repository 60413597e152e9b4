#include "compare/first_difference/walk_parts.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "base/text.h"
#include "compare/describe/item_difference.h"
#include "compare/first_difference/value_maker.h"
#include "compare/pair/assigned_values.h"
#include "compare/pair/lasting_writes.h"
#include "compare/pair/shared_places.h"
#include "compare/values/item_views.h"
#include "ops/op_name.h"
#include "ops/op_traits.h"

namespace msprobe {

void IdleArguments::Note(const OpList& ops, size_t i) {
  const bool again = !empty() && ApiOf(ops.NameAt(last)) == ApiOf(ops.NameAt(i));
  if (!again) first = i;
  more_calls = again ? more_calls + 1 : 0;
  last = i;
}

void IdleArguments::SetOn(const WalkInput& in, FirstDifference* found) const {
  found->kind = FirstDifference::Kind::kArgument;
  found->op = first;
  found->golden_op = in.plan.golden_of[first];
  found->more_calls = more_calls;
}

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

bool IsInOtherForm(const WalkInput& in, std::string_view op, bool golden) {
  bool inside = false;
  if (in.other_forms.size() == 0) return inside;
  (golden ? in.golden_tree : in.target_tree).ForEachAround(op, [&](std::string_view name) {
    inside = inside || in.other_forms.Has(name);
    return !inside;
  });
  return inside;
}

bool IsMadeGood(const WalkInput& in, size_t op) {
  constexpr size_t kMostBehind = 64;
  ItemViews ours(*in.pair.target, in.pair.options.mode), theirs(*in.pair.golden, in.pair.options.mode);
  const auto result = [](const ItemViews& items) {
    for (const ItemView& item : items.items()) {
      if (item.state == ItemState::kOutput) return LooksOf(item);
    }
    return std::string();
  };
  const auto takes = [](const ItemViews& items, const std::string& looks) {
    return !looks.empty() && std::ranges::any_of(items.items(), [&](const ItemView& item) {
      return item.state == ItemState::kInput && LooksOf(item) == looks;
    });
  };
  if (!in.plan.cross || !ours.Read(op).ok() || !theirs.Read(in.plan.golden_of[op]).ok()) return false;
  const OpDistance& d = in.distances[op];
  if (!std::isfinite(d.output) || !std::isfinite(d.amplitude))
    return false;  // NaN and infinities are made good by nothing
  const std::string given = result(ours), golden = result(theirs);
  for (size_t i = op + 1, seen = 0; i < in.distances.size() && seen < kMostBehind; ++i) {
    const OpDistance& next = in.distances[i];
    if (!next.matched || !next.has_input || next.shapes) continue;
    if (ParseOpName(in.pair.target->ops().NameAt(i)).direction != OpDirection::kForward) break;
    ++seen;
    if (!ours.Read(i).ok() || !theirs.Read(in.plan.golden_of[i]).ok()) return false;
    if (takes(ours, given)) return next.rounded <= 1;
    const auto stands_out = static_cast<float>(in.pair.options.thresholds->stands_out);
    if (takes(theirs, golden)) return next.rounded * stands_out < d.output;
  }
  return false;
}

bool IsOfOtherNode(const WalkInput& in, size_t op) {
  const DumpFile &target = *in.pair.target, &golden = *in.pair.golden;
  const NameParts name = ParseOpName(target.ops().NameAt(op));
  const uint32_t partner = in.plan.golden_of[op];
  if (name.direction != OpDirection::kBackward || IsModuleName(name.full) || partner == kNoOp) return false;
  const auto forward = target.FindOp(ForwardNameOf(name));
  const auto other = golden.FindOp(ForwardNameOf(ParseOpName(golden.ops().NameAt(partner))));
  if (!forward || !other) return false;
  const auto shape_of = [](const DumpFile& dump, size_t at, std::string_view item) {
    ItemViews items(dump, CompareMode::kStructure);
    if (!items.Read(at).ok()) return std::string();  // it was read before
    const auto found = std::ranges::find(items.items(), item, &ItemView::suffix);
    return found == items.items().end() || !found->tensor ? std::string() : found->shape;
  };
  const std::string ours = shape_of(target, op, ".output.0"), theirs = shape_of(golden, partner, ".output.0");
  const std::string input = shape_of(target, *forward, ".input.0");
  const bool same = !input.empty() && input == shape_of(golden, *other, ".input.0");
  return same && !ours.empty() && !theirs.empty() && (ours == input) != (theirs == input);
}

bool IsReordered(const WalkInput& in, size_t op) {
  if (in.plan.cross || in.plan.implementations || in.pair.options.mode != CompareMode::kStatistics) return false;
  JsonDoc target, golden;
  OpDiff diff;
  if (!DiffOpWith(in.pair, op, in.plan.golden_of[op], &target, &golden, &diff).ok())
    return false;  // it was read before
  bool some = false;
  for (size_t i = 0; i < diff.rows_used; ++i) {
    if (IsResult(diff.target[i].state) || ShownError(diff, i, CompareMode::kStatistics) == 0) continue;
    if (!IsReordered(diff, i)) return false;
    some = true;
  }
  return some;
}

bool IsOtherGradient(const WalkInput& in, size_t op) {
  if (IsOfOtherNode(in, op)) return true;
  const StatusOr<bool> whole =
      IsWholeAtEachPlace(in.pair, op, in.plan.golden_of[op], static_cast<double>(in.distances[op].tolerance));
  return whole.ok() && *whole;  // both were read before
}

void TakeInOtherOrder(const WalkInput& in, size_t op, OpDistance* d) {
  const NameParts name = ParseOpName(in.pair.target->ops().NameAt(op));
  if (IsModuleName(name.full) || name.direction != OpDirection::kForward) return;
  const StatusOr<bool> same = AreGivenTheSame(in.pair, op, in.plan.golden_of[op]);
  if (!same.ok() || !*same) return;  // both were read before
  d->shapes = false;
  d->chosen = d->output > 1;
  if (!d->chosen) d->input = d->rounded = d->input_error = 0;
}

std::optional<size_t> EnteredAround(const WalkInput& in, size_t op) {
  std::optional<size_t> out;
  const OpList& ops = in.pair.target->ops();
  const std::string_view name = ops.NameAt(op);
  const NameParts parts = ParseOpName(name);
  if (in.plan.cross || in.plan.implementations) return out;
  // A parameter's gradient stands in front of the backward call of its module, which shows what came in.
  constexpr size_t kNear = 4;
  for (size_t i = op + 1; parts.direction == OpDirection::kParameterGrad && i < std::min(ops.size(), op + kNear); ++i) {
    const NameParts next = ParseOpName(ops.NameAt(i));
    const OpDistance& d = in.distances[i];
    if (next.base == parts.base && next.direction == OpDirection::kBackward && d.matched && d.input > 1 && !d.shapes)
      return i;
  }
  if (parts.direction != OpDirection::kForward) return out;
  in.target_tree.ForEachAround(name, [&](std::string_view around) {
    const auto at = in.pair.target->FindOp(around);
    if (!at || *at < op || !IsModuleName(around)) return true;
    const OpDistance& d = in.distances[*at];
    if (d.matched && d.chosen && !d.other_call && !d.argument && !d.shapes) out = *at;
    return true;
  });
  return out;
}

bool IsBackwardOfRewritten(const WalkInput& in, const BigArray<RulerVerdict>& verdicts, size_t op) {
  const NameParts name = ParseOpName(in.pair.target->ops().NameAt(op));
  if (name.direction != OpDirection::kBackward || IsModuleName(name.full)) return false;
  const auto forward = in.pair.target->FindOp(ForwardNameOf(name));
  return forward && verdicts[*forward] == RulerVerdict::kRewritten;
}

void MoveToParameter(const WalkInput& in, WalkResult* walk) {
  FirstDifference& found = walk->source;
  if (found.kind != FirstDifference::Kind::kInput || in.plan.cross || in.plan.implementations) return;
  const std::string_view name = in.pair.target->ops().NameAt(found.op);
  if (!IsModuleName(name) || in.distances[found.op].parameter) return;  // functions are given it themselves
  if (ParseOpName(name).direction != OpDirection::kForward) return;
  std::optional<size_t> holder;
  in.target_tree.ForEachAround(name, [&](std::string_view around) {
    const auto at = IsModuleName(around) ? in.pair.target->FindOp(around) : std::nullopt;
    if (at && *at > found.op && in.distances[*at].matched && in.distances[*at].parameter) holder = *at;
    return !holder;
  });
  if (!holder) return;
  found.op = *holder;
  found.golden_op = in.plan.golden_of[*holder];
  found.units = in.distances[*holder].input;
}

Status MoveToAssignment(const WalkInput& in, WalkResult* walk) {
  FirstDifference& found = walk->source;
  if (found.kind != FirstDifference::Kind::kInput || found.golden_op == kNoOp || in.plan.fused) return OkStatus();
  MSP_ASSIGN_OR_RETURN(const std::optional<Assignment> at, AssignedBefore(in.pair, in.plan, found.op));
  if (!at) return OkStatus();
  std::swap(walk->verdicts[at->op], walk->verdicts[found.op]);
  walk->verdicts[found.op] = walk->contexts[found.op].verdict = RulerVerdict::kInherited;
  walk->contexts[at->op].verdict = walk->verdicts[at->op];
  found.op = at->op;
  found.golden_op = in.plan.golden_of[at->op];
  found.item = at->item;
  return OkStatus();
}

bool IsOfNumbers(std::string_view name, const OpDistance& d) {
  return !d.has_input && !d.other_call && d.values && !d.argument && IsModuleName(name) &&
         ParseOpName(name).direction == OpDirection::kForward;
}

bool OnlyChecksumsDiffer(const WalkInput& in, const OpDistance& d, float error) {
  constexpr float kSameStatistics = 0x1p-22f;
  return in.pair.options.mode == CompareMode::kChecksum && error <= std::max(d.tolerance, kSameStatistics);
}

bool JumpsFromDrift(const OpDistance& d, float drift) {
  constexpr float kLeastDrift = 0x1p-24f;  // statistics show no less
  constexpr float kFineDrift = 300;        // what stands out so much from all drift before it is no drift
  const bool known = drift > 0 && d.has_input && d.has_output && d.values && !d.few && !d.dtypes;
  return known && d.worst > 1 && d.tolerance > 0 && d.input_error <= drift &&
         std::max(drift, kLeastDrift) * kFineDrift < d.tolerance * d.conditioned;
}

float NormOf(std::string_view name, const OpDistance& d) {
  const bool function = d.conditioned > 0 && ArithmeticOf(name) == Arithmetic::kFunction;
  return function ? d.norm_output * d.conditioned / d.output : d.norm_output;
}

bool CountDTypes(const OpList& ops, const OpDistances& distances, Differences* out) {
  constexpr double kEverywhere = 0.2, kNearlyAll = 0.9;
  constexpr size_t kFewProducts = 3;
  size_t values = 0, products = 0, cast_products = 0;
  const auto counts = [&](size_t i) { return distances[i].matched && distances[i].tolerance > 0; };
  for (size_t i = distances.size(); i-- > 0;) {
    values += counts(i);
    if (!distances[i].dtypes) continue;
    out->dtype.kind = FirstDifference::Kind::kDType;
    out->dtype.op = i;
    ++out->dtype_ops;
  }
  if (out->dtype_ops == 0) return false;
  if (static_cast<double>(out->dtype_ops) > kEverywhere * static_cast<double>(values)) return true;
  for (size_t i = 0; i < distances.size(); ++i) {
    const std::string_view name = ops.NameAt(i);
    if (!counts(i) || !Contains(name, ".forward") || ArithmeticOf(name) != Arithmetic::kProduct) continue;
    ++products;
    cast_products += distances[i].dtypes;
  }
  return products >= kFewProducts && static_cast<double>(cast_products) >= kNearlyAll * static_cast<double>(products);
}

bool FollowsSplit(float ratio, float split) {
  const auto is = [&](float r) { return ratio > 0 && std::fabs(ratio - r) <= 1e-3f * r; };
  return is(split) || is(1 / split) || is(std::sqrt(split)) || is(std::sqrt(1 / split));
}

}  // namespace msprobe
