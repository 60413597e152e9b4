#include "compare/first_difference/gradient_flow.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/page_trim.h"
#include "compare/describe/item_difference.h"
#include "compare/round_off/no_value.h"
#include "compare/values/item_views.h"
#include "ops/op_name.h"
#include "ops/op_traits.h"

namespace msprobe {
namespace {

using Kind = FirstDifference::Kind;
using Grad = ItemView::Grad;

bool IsOfGradients(std::string_view name) {
  const OpDirection direction = ParseOpName(name).direction;
  return direction == OpDirection::kBackward || direction == OpDirection::kParameterGrad;
}

size_t FirstBackward(const OpList& ops) {
  size_t i = 0;
  while (i < ops.size() && !IsOfGradients(ops.NameAt(i))) ++i;
  return i;
}

/// Whether one run has all backward calls of the other and more, of what both call. Where each has some of its own, as
/// with a part that runs again for the backward pass, the graphs are two forms of one; a run without any only
/// evaluates.
bool OnlyOneHasMore(const WalkInput& in) {
  const OpList &ours = in.pair.target->ops(), &theirs = in.pair.golden->ops();
  if (FirstBackward(ours) == ours.size() || FirstBackward(theirs) == theirs.size()) return false;
  const auto lone = [&](const OpList& ops, size_t i, const DumpFile& other) {
    const std::string_view name = ops.NameAt(i);
    // Calls are paired in other ways than by name: what the other run has by this name is not missing there.
    return IsOfGradients(name) && !other.FindOp(name) && other.FindOp(ForwardNameOf(ParseOpName(name)));
  };
  bool missing = false, extra = false;
  for (const uint32_t op : in.plan.golden_only) missing = missing || lone(theirs, op, *in.pair.target);
  for (size_t i = 0; i < ours.size() && !extra; ++i)
    extra = in.plan.golden_of[i] == kNoOp && !in.plan.NotSeen(i) && lone(ours, i, *in.pair.golden);
  return missing != extra;
}

/// Whether one run computes something in its forward pass by ops of its own: then calls that are paired need not be
/// given the same.
bool ComputesOtherwise(const WalkInput& in) {
  const OpList &ours = in.pair.target->ops(), &theirs = in.pair.golden->ops();
  const auto computes = [](const OpList& ops, size_t i) {
    const std::string_view name = ops.NameAt(i);
    return ParseOpName(name).direction == OpDirection::kForward && !OnlyMovesOrCasts(name);
  };
  const size_t backward = FirstBackward(ours), golden_backward = FirstBackward(theirs);
  for (const uint32_t op : in.plan.golden_only) {
    if (op < golden_backward && computes(theirs, op)) return true;
  }
  for (size_t i = 0; i < backward; ++i) {
    if (in.plan.golden_of[i] == kNoOp && !in.plan.NotSeen(i) && computes(ours, i)) return true;
  }
  return false;
}

/// Looks of what the forward call gives whose backward call is given another gradient; empty where it is no such
/// difference.
StatusOr<std::vector<std::string>> GivenByForward(const WalkInput& in, const FirstDifference& source) {
  std::vector<std::string> out;
  if (source.kind != Kind::kInput || !source.gradient) return out;
  const auto forward = in.pair.target->FindOp(ForwardNameOf(ParseOpName(source.name)));
  if (!forward) return out;
  ItemViews items(*in.pair.target, in.pair.options.mode);
  MSP_RETURN_IF_ERROR(items.Read(*forward));
  for (const ItemView& item : items.items()) {
    if (item.state == ItemState::kOutput && !LooksOf(item).empty()) out.push_back(LooksOf(item));
  }
  return out;
}

/// Whether the item, which has no statistics here, is one of these.
StatusOr<bool> IsAmong(const WalkInput& in, size_t op, const std::string& suffix,
                       const std::vector<std::string>& looks) {
  ItemViews items(*in.pair.target, in.pair.options.mode);
  MSP_RETURN_IF_ERROR(items.Read(op));
  return std::ranges::any_of(items.items(), [&](const ItemView& item) {
    return item.suffix == suffix && std::ranges::find(looks, LooksOf(item)) != looks.end();
  });
}

/// The item that requires gradients in one of the calls only; what goes in before what comes out.
const ItemView* PartsAt(const ItemViews& own, const ItemViews& other, bool results) {
  for (const ItemView& item : own.items()) {
    if (!item.tensor || IsResult(item.state) != results || item.requires_grad == Grad::kNA) continue;
    const auto partner = std::ranges::find(other.items(), item.suffix, &ItemView::suffix);
    if (partner == other.items().end() || !partner->tensor || partner->requires_grad == Grad::kNA) continue;
    if (partner->requires_grad != item.requires_grad) return &item;
  }
  return nullptr;
}

/// The first tensor of the forward pass that requires gradients in one run only; with `given` one of these, with `only`
/// one that does or does not in the target.
StatusOr<FirstDifference> FirstParting(const WalkInput& in, size_t backward, const std::vector<std::string>& given,
                                       std::optional<Grad> only) {
  FirstDifference out;
  const OpList& ops = in.pair.target->ops();
  ItemViews own(*in.pair.target, CompareMode::kStructure), other(*in.pair.golden, CompareMode::kStructure);
  for (size_t i = 0; i < backward; ++i) {
    if (i % kStepsBetweenTrims == 0) TrimMaps();
    const uint32_t partner = in.plan.golden_of[i];
    if (partner == kNoOp || ParseOpName(ops.NameAt(i)).direction != OpDirection::kForward) continue;
    MSP_RETURN_IF_ERROR(own.Read(i));
    MSP_RETURN_IF_ERROR(other.Read(partner));
    const ItemView* item = PartsAt(own, other, false);
    if (!item) item = PartsAt(own, other, true);
    if (!item || (only && item->requires_grad != *only)) continue;
    if (!given.empty()) {
      MSP_ASSIGN_OR_RETURN(const bool among, IsAmong(in, i, item->suffix, given));
      if (!among) continue;
    }
    const bool requires_it = item->requires_grad == Grad::kTrue;
    out.kind = Kind::kArgument;
    out.op = i;
    out.golden_op = partner;
    out.item = item->suffix;
    out.argument = NameOfArgument(ops.NameAt(i), own.items(), out.item);
    out.difference = {"requires_grad", requires_it ? "True" : "False", requires_it ? "False" : "True", -1};
    out.detail = "requires_grad is " + out.difference.target + " against " + out.difference.golden;
    out.verdict = RulerVerdict::kBug;
    return out;
  }
  return out;
}

}  // namespace

StatusOr<FirstDifference> GradientFlow(const WalkInput& in, const Differences& found, size_t answer_at) {
  FirstDifference out;
  const OpList& ops = in.pair.target->ops();
  if (in.plan.cross || in.plan.fused || in.plan.implementations) return out;
  // Where both have all backward calls, a value that is used twice may be cut off in one place: its gradient is less.
  std::vector<std::string> given;
  if (!OnlyOneHasMore(in)) {
    MSP_ASSIGN_OR_RETURN(given, GivenByForward(in, found.source));
    if (given.empty()) return out;
  }
  if (ComputesOtherwise(in)) return out;
  const Kind kind = found.Answer().kind;
  const size_t backward = FirstBackward(ops);
  if (kind != Kind::kNone && kind != Kind::kGrows && answer_at < backward) return out;
  return FirstParting(in, backward, given, std::nullopt);
}

StatusOr<FirstDifference> FrozenWeight(const WalkInput& in, bool target) {
  return FirstParting(in, FirstBackward(in.pair.target->ops()), {}, target ? Grad::kFalse : Grad::kTrue);
}

}  // namespace msprobe
