#include "compare/first_difference/optimizer_intake.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/text.h"
#include "compare/first_difference/parameter_owner.h"
#include "compare/values/item_views.h"
#include "ops/op_name.h"

namespace msprobe {
namespace {

/// Whether two tensors are one but for a factor, as clipping leaves them.
bool IsScaled(const ItemView& a, const ItemView& b) {
  constexpr double kSame = 1e-3;
  if (!a.tensor || a.shape != b.shape || !a.stats[kNorm].IsNumber() || !b.stats[kNorm].IsNumber()) return false;
  const double norm = b.stats[kNorm].AsDouble(), factor = norm == 0 ? 0 : a.stats[kNorm].AsDouble() / norm;
  if (factor <= 0 || std::fabs(factor - 1) < kSame) return false;
  const auto scaled = [&](Stat k) {
    return a.stats[k].IsNumber() && b.stats[k].IsNumber() &&
           std::fabs(a.stats[k].AsDouble() - factor * b.stats[k].AsDouble()) <= kSame * factor * norm;
  };
  return scaled(kMax) && scaled(kMin);
}

/// The first of `ops` that takes the norm of what is `taken` by the step but for a factor.
StatusOr<std::optional<uint32_t>> NormOfUnscaled(const DumpFile& dump, const std::vector<uint32_t>& ops,
                                                 const ItemView& taken) {
  ItemViews items(dump, CompareMode::kStatistics);
  for (const uint32_t op : ops) {
    const std::string_view name = dump.ops().NameAt(op);
    if (IsModuleName(name) || !Contains(ApiOf(name), "norm")) continue;
    MSP_RETURN_IF_ERROR(items.Read(op));
    const auto unscaled = [&](const ItemView& item) { return !IsResult(item.state) && IsScaled(taken, item); };
    if (std::ranges::any_of(items.items(), unscaled)) return std::optional(op);
  }
  return std::optional<uint32_t>();
}

/// The ops of a step that change weights.
struct Updates {
  std::string_view algorithm;  // "Adam", "SGD"; "" where it is not known
  size_t first = 0;            // of the dump
  size_t ops = 0;              // one for each parameter, or one for a list of them
  size_t count = 0;            // of parameters
  size_t again = 0;            // of these, that were changed before
  size_t decays = 0;           // of these a part is taken off
  std::vector<std::string> shapes;
  std::unordered_set<std::string> left;  // what they leave
};

/// Whether a product in place takes a part off; that of a moment stands in front of what is added to it.
bool Decays(const OpList& ops, size_t i, std::span<const ItemView> items) {
  constexpr double kLeastLeft = 0.5;
  const bool moment = i + 1 < ops.size() && StepOf(ops.NameAt(i + 1)) == "addcmul";
  return !moment && ApiOf(ops.NameAt(i)).ends_with("_") && std::ranges::any_of(items, [](const ItemView& item) {
    const bool number = item.dtype == "<class 'float'>" && !IsResult(item.state) && item.stats[kMax].IsNumber();
    return number && item.stats[kMax].AsDouble() >= kLeastLeft && item.stats[kMax].AsDouble() < 1;
  });
}

/// Whether a weight is added to its gradient, as SGD decays it.
bool AddsWeight(std::span<const ItemView> items) {
  using Grad = ItemView::Grad;
  const auto at = [&](std::string_view suffix) { return std::ranges::find(items, suffix, &ItemView::suffix); };
  const auto gradient = at(".input.0"), weight = at(".input.1");
  return gradient != items.end() && weight != items.end() && gradient->requires_grad == Grad::kFalse &&
         weight->requires_grad == Grad::kTrue;
}

/// How many of what the product gives are `weights`: gradients are scaled, and averages kept, by products, too.
size_t CountOf(std::span<const ItemView> items, const std::unordered_set<std::string>& weights) {
  return static_cast<size_t>(std::ranges::count_if(items, [&](const ItemView& item) {
    return item.tensor && item.state == ItemState::kOutput && weights.contains(PrintOf(item));
  }));
}

/// Adds what one op changes: one parameter, or a list of them. A second step takes in what the first one left.
void AddUpdated(std::span<const ItemView> items, size_t op, Updates* out) {
  constexpr std::string_view kFirst = ".input.0";
  if (out->count == 0) out->first = op;
  ++out->ops;
  for (const ItemView& item : items) {
    const bool one = item.suffix == kFirst, of_list = StartsWith(item.suffix, ".input.0.");
    if (item.tensor && item.state == ItemState::kOutput && Amplitude(item) > 0) out->left.insert(PrintOf(item));
    if (!item.tensor || IsResult(item.state) || (!one && !of_list)) continue;
    out->again += out->left.contains(PrintOf(item)) ? 1 : 0;
    out->shapes.push_back(item.shape);
    ++out->count;
  }
}

/// What is made of a weight that was changed before is that weight, in front of its next change.
void FollowDecay(std::span<const ItemView> items, std::unordered_set<std::string>* left) {
  const auto given = std::ranges::find(items, ".input.0", &ItemView::suffix);
  if (given == items.end() || !left->contains(PrintOf(*given))) return;
  for (const ItemView& item : items) {
    if (item.tensor && item.state == ItemState::kOutput) left->insert(PrintOf(item));
  }
}

StatusOr<Updates> UpdatesOf(const DumpFile& dump) {
  const OpList& ops = dump.ops();
  Updates adam, sgd{"SGD"};
  std::vector<size_t> products, before;     // of these, in front of an update: averages of weights follow the last one
  std::unordered_set<std::string> weights;  // that Adam steps
  ItemViews items(dump, CompareMode::kStatistics);
  for (size_t i = BehindBackward(ops); i < ops.size(); ++i) {
    const std::string_view name = ops.NameAt(i), step = StepOf(name);
    const bool divides = step == "addcdiv" || StartsWith(step, "_fused_adam");
    const bool adds = step == "add" || StartsWith(step, "_fused_sgd");
    // Others divide, too (RMSprop, Adagrad); a moving average of gradients is Adam's.
    if (!IsModuleName(name) && (step == "lerp" || StartsWith(step, "_fused_adam"))) adam.algorithm = "Adam";
    if (IsModuleName(name) || (!divides && !adds && step != "mul")) continue;
    MSP_RETURN_IF_ERROR(items.Read(i));
    if (step == "mul") FollowDecay(items.items(), &adam.left);
    if (step == "mul" && Decays(ops, i, items.items())) products.push_back(i);
    for (const ItemView& item : items.items()) {
      if (divides && item.suffix == ".input.0") weights.insert(PrintOf(item));
    }
    if (divides) {
      AddUpdated(items.items(), i, &adam);
      before.insert(before.end(), products.begin(), products.end());
      products.clear();
    }
    // In place it is an average of weights.
    if (step == "add" && !ApiOf(name).ends_with('_') && AddsWeight(items.items())) ++sgd.decays;
    if (adds && (step != "add" || Descends(items.items()))) AddUpdated(items.items(), i, &sgd);
  }
  for (const size_t i : before) {
    MSP_RETURN_IF_ERROR(items.Read(i));
    adam.decays += CountOf(items.items(), weights);
  }
  if (adam.count > 0 && sgd.count > 0) return Updates();  // two optimizers in one step
  return adam.count > 0 ? adam : sgd.count > 0 ? sgd : Updates();
}

/// Whether what the updates of `stepping` leave is there behind the backward pass of `other`, too: it stepped by
/// functions for lists, which are not recorded, and something looks at its weights later.
StatusOr<bool> HoldsUpdated(const DumpFile& stepping, const Updates& updates, const DumpFile& other) {
  std::unordered_set<std::string> left;
  ItemViews items(stepping, CompareMode::kStatistics);
  for (size_t i = updates.first; i < stepping.ops().size(); ++i) {
    const std::string_view name = stepping.ops().NameAt(i);
    if (IsModuleName(name) || !ApiOf(name).ends_with('_')) continue;
    MSP_RETURN_IF_ERROR(items.Read(i));
    const bool weight = StepOf(name) != "add" || Descends(items.items());
    for (const ItemView& item : items.items()) {
      if (weight && item.tensor && item.state == ItemState::kOutput && Amplitude(item) > 0) left.insert(PrintOf(item));
    }
  }
  ItemViews seen(other, CompareMode::kStatistics);
  for (size_t i = BehindBackward(other.ops()); i < other.ops().size() && !left.empty(); ++i) {
    MSP_RETURN_IF_ERROR(seen.Read(i));
    const auto holds = [&](const ItemView& item) {
      return item.tensor && item.state == ItemState::kInput && left.contains(PrintOf(item));
    };
    if (std::ranges::any_of(seen.items(), holds)) return true;
  }
  return false;
}

/// How many tensors the first norm over a list behind the backward pass takes in; 0: there is none.
StatusOr<size_t> CountOfNorm(const DumpFile& dump, size_t* op) {
  ItemViews items(dump, CompareMode::kStructure);
  for (size_t i = BehindBackward(dump.ops()); i < dump.ops().size(); ++i) {
    if (IsModuleName(dump.ops().NameAt(i)) || ApiOf(dump.ops().NameAt(i)) != "_foreach_norm") continue;
    MSP_RETURN_IF_ERROR(items.Read(i));
    *op = i;
    return static_cast<size_t>(std::ranges::count_if(
        items.items(), [](const ItemView& item) { return item.tensor && StartsWith(item.suffix, ".input.0."); }));
  }
  return size_t{0};
}

/// What differs in what two steps take in; without an item nothing does.
struct Intake {
  std::string item, target, golden;
  size_t op = 0, golden_op = 0;
  bool same_results = false;
};

/// Where one run clips by the norm of other gradients than the other.
StatusOr<Intake> CompareNorms(const DumpPair& pair) {
  Intake out;
  MSP_ASSIGN_OR_RETURN(const size_t count, CountOfNorm(*pair.target, &out.op));
  MSP_ASSIGN_OR_RETURN(const size_t golden, CountOfNorm(*pair.golden, &out.golden_op));
  if (count == 0 || golden == 0 || count == golden) return out;
  out.item = ".norms";
  out.target = std::to_string(count);
  out.golden = std::to_string(golden);
  return out;
}

StatusOr<Intake> CompareUpdates(const DumpPair& pair) {
  MSP_ASSIGN_OR_RETURN(const Updates target, UpdatesOf(*pair.target));
  MSP_ASSIGN_OR_RETURN(const Updates golden, UpdatesOf(*pair.golden));
  if (target.count == 0 || golden.count == 0) return Intake();
  const auto found = [&](std::string_view item, std::string_view ours, std::string_view theirs) {
    return Intake{std::string(item), std::string(ours), std::string(theirs),
                  target.first,      golden.first,      target.left == golden.left};
  };
  std::vector<std::string> a = target.shapes, b = golden.shapes;
  const bool same_order = a == b;
  std::ranges::sort(a);
  std::ranges::sort(b);
  const bool again = target.count % golden.count == 0 || golden.count % target.count == 0;
  const bool known = !target.algorithm.empty() && !golden.algorithm.empty();
  const bool loops = target.ops == target.count && golden.ops == golden.count;  // lists are sorted by dtype and device
  if (known && target.algorithm != golden.algorithm) return found(".algorithm", target.algorithm, golden.algorithm);
  if (target.count != golden.count) {
    if (again) return Intake();                      // a step that runs twice
    const bool more = target.again != golden.again;  // some, by two optimizers or by two steps of one of them
    return found(more ? ".updates" : ".parameters", std::to_string(target.count), std::to_string(golden.count));
  }
  if (target.decays != golden.decays && std::min(target.decays, golden.decays) > 0)
    return found(".decays", std::to_string(target.decays), std::to_string(golden.decays));
  if (!loops || same_order || a != b) return Intake();
  const size_t at =
      static_cast<size_t>(std::ranges::mismatch(target.shapes, golden.shapes).in1 - target.shapes.begin());
  return found(".order", target.shapes[at], golden.shapes[at]);
}

}  // namespace

StatusOr<OneSteps> OnlyOneSteps(const DumpPair& pair) {
  MSP_ASSIGN_OR_RETURN(const Updates target, UpdatesOf(*pair.target));
  MSP_ASSIGN_OR_RETURN(const Updates golden, UpdatesOf(*pair.golden));
  if ((target.count == 0) == (golden.count == 0)) return OneSteps::kNo;
  MSP_ASSIGN_OR_RETURN(const bool both, target.count == 0 ? HoldsUpdated(*pair.golden, golden, *pair.target)
                                                          : HoldsUpdated(*pair.target, target, *pair.golden));
  return both ? OneSteps::kUnrecorded : OneSteps::kYes;
}

StatusOr<FirstDifference> CompareIntake(const DumpPair& pair, const MatchPlan& plan) {
  MSP_ASSIGN_OR_RETURN(Intake found, CompareUpdates(pair));
  if (found.item.empty()) {
    MSP_ASSIGN_OR_RETURN(found, CompareNorms(pair));
  }
  FirstDifference out;
  if (found.item.empty()) return out;
  out.kind = FirstDifference::Kind::kArgument;
  out.of_step = true;
  out.item = std::move(found.item);
  out.op = found.op;
  out.golden_op = plan.golden_of[out.op];
  out.name = pair.target->ops().NameAt(out.op);
  out.golden_name = pair.golden->ops().NameAt(found.golden_op);
  out.difference = {"value", std::move(found.target), std::move(found.golden), -1};
  out.detail = "is " + out.difference.target + " against " + out.difference.golden;
  // An order alone changes nothing: it shows that the groups are others, unless the same comes of it.
  const RulerVerdict of_order = found.same_results ? RulerVerdict::kNone : RulerVerdict::kSuspicious;
  out.verdict = out.item == ".order" ? of_order : RulerVerdict::kBug;
  return out;
}

StatusOr<bool> BlameClipping(const DumpPair& pair, const MatchPlan& plan, const WalkResult& walk, Differences* out) {
  using enum FirstDifference::Kind;
  const FirstDifference& answer = out->Answer();
  const bool lone = answer.kind == kExtraOp || answer.kind == kMissingOp;
  const size_t begin = BehindBackward(pair.target->ops()), golden_begin = BehindBackward(pair.golden->ops());
  const size_t seen = lone ? walk.answer_at : answer.op;
  if ((!lone && answer.kind != kInput) || plan.cross || plan.fused || seen < begin || seen >= plan.golden_of.size())
    return false;
  const uint32_t golden_seen = plan.golden_of[seen];
  if (golden_seen == kNoOp) return false;
  std::vector<uint32_t> ops, golden_ops;
  for (size_t i = begin; i < seen; ++i) {
    if (plan.golden_of[i] == kNoOp && !plan.NotSeen(i)) ops.push_back(static_cast<uint32_t>(i));
  }
  for (const uint32_t op : plan.golden_only) {
    if (op >= golden_begin && op < golden_seen) golden_ops.push_back(op);
  }
  if (ops.empty() == golden_ops.empty()) return false;
  ItemViews target(*pair.target, CompareMode::kStatistics), golden(*pair.golden, CompareMode::kStatistics);
  MSP_RETURN_IF_ERROR(target.Read(seen));
  MSP_RETURN_IF_ERROR(golden.Read(golden_seen));
  for (const ItemView& a : target.items()) {
    const auto b = std::ranges::find(golden.items(), a.suffix, &ItemView::suffix);
    if (IsResult(a.state) || b == golden.items().end() || !IsScaled(a, *b)) continue;
    MSP_ASSIGN_OR_RETURN(const std::optional<uint32_t> norm, golden_ops.empty()
                                                                 ? NormOfUnscaled(*pair.target, ops, a)
                                                                 : NormOfUnscaled(*pair.golden, golden_ops, *b));
    if (!norm) continue;
    FirstDifference clip;
    clip.kind = golden_ops.empty() ? kExtraOp : kMissingOp;
    clip.op = golden_ops.empty() ? *norm : seen;
    clip.golden_op = golden_ops.empty() ? kNoOp : *norm;
    clip.clips = true;
    clip.verdict = answer.verdict;
    std::erase_if(out->others, [&](const FirstDifference& d) {  // parts of the clipping
      return (d.kind == kExtraOp && d.op >= begin && d.op < seen) ||
             (d.kind == kMissingOp && d.golden_op >= golden_begin && d.golden_op < golden_seen);
    });
    out->source = FirstDifference();
    out->first = std::move(clip);
    return true;
  }
  return false;
}

}  // namespace msprobe
