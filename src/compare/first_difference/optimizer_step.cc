#include "compare/first_difference/optimizer_step.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <set>
#include <unordered_set>

#include "base/text.h"
#include "compare/first_difference/optimizer_intake.h"
#include "compare/first_difference/parameter_owner.h"
#include "compare/values/item_views.h"
#include "ops/op_name.h"
#include "ops/op_traits.h"

namespace msprobe {
namespace {

constexpr size_t kMostSteps = 100000;  // ops of a step that are looked at
constexpr double kSameSetting = 1e-6;  // relative: some are computed back from others
constexpr double kLargestEpsilon = 0.5;
constexpr double kLeastLeft = 0.5;  // of a weight that a step decays

/// Reads the numbers that one step is given.
class StepReader {
 public:
  explicit StepReader(const DumpFile& dump) : dump_(dump) {}

  Status Read() {
    const OpList& ops = dump_.ops();
    const size_t begin = BehindBackward(ops);
    MSP_ASSIGN_OR_RETURN(parameters_, ParameterPrints(dump_));
    MSP_ASSIGN_OR_RETURN(end_, BehindUpdate(begin));
    for (size_t i = begin; i < end_; ++i) {
      const std::string_view name = ops.NameAt(i);
      if (IsModuleName(name)) continue;
      MSP_RETURN_IF_ERROR(ReadOp(i, StepOf(name)));
    }
    return OkStatus();
  }

  bool IsBehind(size_t i) const { return i >= end_; }

  /// Takes what this op is given, whatever others are: groups of parameters have settings of their own.
  Status ReadAlone(size_t i) {
    constexpr size_t kOfOneWeight = 16;  // ops from its decay to its update
    const std::string_view step = StepOf(dump_.ops().NameAt(i));
    if (step == "mul") decayed_.reset(), kept_.reset();
    MSP_RETURN_IF_ERROR(ReadOp(i, step));
    for (size_t k = i + 1; step == "mul" && k < std::min(dump_.ops().size(), i + kOfOneWeight); ++k) {
      const std::string_view next = StepOf(dump_.ops().NameAt(k));
      if (next == "addcdiv") {
        MSP_RETURN_IF_ERROR(ReadOp(k, next));
        break;
      }
    }
    return OkStatus();
  }

  /// `of_one`: what was read last is of one weight, so that its decay has its rate.
  std::vector<OptimizerSetting> Settings(bool of_one = false) const {
    std::vector<OptimizerSetting> out;
    const auto add = [&](const char* name, const std::optional<Number>& number, double value) {
      if (number && std::isfinite(value)) out.push_back({name, value, number->op});
    };
    add("lr", lr_, lr_ ? lr_->value : 0);
    if (!lr_ && addcdiv_ && beta1_ && step_ > 0)
      add("lr", addcdiv_, -addcdiv_->value * (1 - std::pow(1 - beta1_->value, step_)));
    if (!lr_ && !addcdiv_ && alpha_) add("lr", alpha_, -alpha_->value);
    add("beta1", beta1_, beta1_ ? 1 - beta1_->value : 0);
    add("beta2", beta2_, beta2_ ? 1 - beta2_->value : 0);
    add("eps", eps_, eps_ ? eps_->value : 0);
    add("weight_decay", coupled_decay_, coupled_decay_ ? coupled_decay_->value : 0);
    if (fused_decay_ && lr_) add("lr * weight_decay", fused_decay_, fused_decay_->value * lr_->value);
    AddFactors(&out);
    if (of_one || one_rate_) TakeRateOff(&out);
    return out;
  }

 private:
  struct Number {
    double value = 0;
    size_t op = 0;
  };

  /// Behind the last op that changes a weight: what follows averages weights, or looks at them.
  StatusOr<size_t> BehindUpdate(size_t begin) {
    const OpList& ops = dump_.ops();
    for (size_t i = std::min(ops.size(), begin + kMostSteps); i-- > begin;) {
      const std::string_view step = StepOf(ops.NameAt(i));
      if (IsModuleName(ops.NameAt(i))) continue;
      if (step == "addcdiv" || StartsWith(step, "_fused_")) return i + 1;
      if (step != "add") continue;
      MSP_ASSIGN_OR_RETURN(const std::span<const ItemView> items, ItemsOf(i));
      if (Descends(items)) return i + 1;
    }
    return begin;
  }

  StatusOr<std::span<const ItemView>> ItemsOf(size_t i) {
    size_t count = 0;
    MSP_RETURN_IF_ERROR(dump_.ParseOp(i, &doc_));
    DescribeOp(dump_.ops().NameAt(i), doc_, CompareMode::kStatistics, &scratch_, &items_, &count);
    return std::span<const ItemView>(items_.data(), count);
  }

  /// Whether a product is of a weight, which it decays; gradients are scaled and clipped by such products, too.
  bool IsOfParameter(std::span<const ItemView> items) const {
    return std::ranges::any_of(items, [&](const ItemView& item) {
      const bool first = item.suffix == ".input.0" || item.suffix.starts_with(".input.0.");
      if (!first || !item.tensor) return false;
      if (item.requires_grad == ItemView::Grad::kTrue) return true;  // also one that no module is recorded with
      const bool unknown = item.requires_grad == ItemView::Grad::kNA && parameters_.empty();
      return unknown || parameters_.contains(PrintOf(item));
    });
  }

  /// Whether the op behind the product is `step` and adds to what it gives, as to what is kept of the gradients.
  StatusOr<bool> IsTakenBy(std::string_view step, size_t i, const std::string& given) {
    if (i + 1 >= dump_.ops().size() || StepOf(dump_.ops().NameAt(i + 1)) != step) return false;
    MSP_ASSIGN_OR_RETURN(const std::span<const ItemView> next, ItemsOf(i + 1));
    return std::ranges::any_of(next, [&](const ItemView& item) {
      return item.suffix.starts_with(".input.0") && item.tensor && PrintOf(item) == given;
    });
  }

  /// The decay by itself, where the rate that it is multiplied by is known.
  static void TakeRateOff(std::vector<OptimizerSetting>* out) {
    const auto rate = std::ranges::find(*out, "lr", &OptimizerSetting::name);
    const auto decay = std::ranges::find(*out, "lr * weight_decay", &OptimizerSetting::name);
    if (rate == out->end() || decay == out->end() || rate->value == 0) return;
    decay->name = "weight_decay";
    decay->value /= rate->value;
  }

  void AddFactors(std::vector<OptimizerSetting>* out) const {
    if (momentum_) out->push_back({"momentum", momentum_->value, momentum_->op});
    // The loop of SGD multiplies what it keeps of the gradients by the momentum; Adam's takes its decay off the weight.
    const bool adam = beta1_.has_value() || addcdiv_.has_value();
    const std::optional<Number>& factor = adam ? decayed_ : kept_;
    if (factor && !fused_decay_) {
      out->push_back({adam ? "lr * weight_decay" : "momentum", adam ? 1 - factor->value : factor->value, factor->op});
      return;
    }
    // A step that leaves the weights as they are takes nothing off them.
    if (beta1_ && addcdiv_ && !fused_decay_) out->push_back({"lr * weight_decay", 0, addcdiv_->op});
  }

  Status ReadOp(size_t i, std::string_view step) {
    const bool fused = StartsWith(step, "_fused_");
    const bool counts = step == "iadd" || step == "__iadd" || step == "add";
    if (!fused && !counts && step != "lerp" && step != "addcmul" && step != "addcdiv" && step != "mul" &&
        step != "__mul")
      return OkStatus();
    MSP_ASSIGN_OR_RETURN(const std::span<const ItemView> items, ItemsOf(i));
    if (fused) return ReadFused(i, items);
    std::optional<double> number, alpha;
    for (const ItemView& item : items) {
      if (item.state == ItemState::kOutput) {
        if (counts && item.shape == "[]" && item.stats[kMax].IsNumber())
          step_ = std::max(step_, item.stats[kMax].AsDouble());
        continue;
      }
      if (item.dtype != "<class 'float'>" || !item.stats[kMax].IsNumber()) continue;
      (item.suffix.ends_with(".alpha") ? alpha : number) = item.stats[kMax].AsDouble();
    }
    if (alpha && step == "add" && *alpha < 0) alpha_ = {*alpha, i};
    if (alpha && step == "add" && *alpha > 0 && AddsWeight(items)) coupled_decay_ = {*alpha, i};
    if (!number) return OkStatus();
    if (step == "lerp") beta1_ = {*number, i};
    if (step == "addcmul") beta2_ = {*number, i};
    if (step == "addcdiv") {
      one_rate_ = one_rate_ && (!addcdiv_ || addcdiv_->value == *number);
      addcdiv_ = {*number, i};
    }
    const bool moments = beta1_ || beta2_;  // clipping adds such a number to a norm
    if (step == "add" && moments && *number > 0 && *number < kLargestEpsilon) eps_ = {*number, i};
    if (step == "mul" && *number > 0 && *number < 1) return ReadFactor(i, items, *number);
    return OkStatus();
  }

  /// Whether a weight is added to its gradient.
  static bool AddsWeight(std::span<const ItemView> items) {
    using Grad = ItemView::Grad;
    const auto at = [&](std::string_view suffix) { return std::ranges::find(items, suffix, &ItemView::suffix); };
    const auto gradient = at(".input.0"), weight = at(".input.1");
    return gradient != items.end() && weight != items.end() && gradient->requires_grad == Grad::kFalse &&
           weight->requires_grad == Grad::kTrue;
  }

  Status ReadFactor(size_t i, std::span<const ItemView> items, double number) {
    const auto output = std::ranges::find_if(
        items, [](const ItemView& item) { return item.state == ItemState::kOutput && item.tensor; });
    const std::string given = output == items.end() ? std::string() : PrintOf(*output);
    // What squares of gradients are added to is a moment; it looks like a weight where no dump says what is one.
    const bool least = number >= kLeastLeft;
    MSP_ASSIGN_OR_RETURN(const bool moment, least ? IsTakenBy("addcmul", i, given) : StatusOr<bool>(false));
    if (moment) return beta2_ = {1 - number, i}, OkStatus();
    if (!decayed_ && least && IsOfParameter(items)) decayed_ = {number, i};
    if (kept_) return OkStatus();
    MSP_ASSIGN_OR_RETURN(const bool added, IsTakenBy("add", i, given));
    if (added) kept_ = {number, i};
    return OkStatus();
  }

  Status ReadFused(size_t i, std::span<const ItemView> items) {
    for (const ItemView& item : items) {
      if (item.state == ItemState::kOutput || !StartsWith(item.dtype, "<class") || !item.stats[kMax].IsNumber())
        continue;
      const double value = item.stats[kMax].AsDouble();
      const std::string_view name = std::string_view(item.suffix).substr(item.suffix.rfind('.') + 1);
      if (name == "lr") lr_ = {value, i};
      if (name == "beta1") beta1_ = {1 - value, i};
      if (name == "beta2") beta2_ = {1 - value, i};
      if (name == "eps") eps_ = {value, i};
      if (name == "momentum") momentum_ = {value, i};
      if (name == "weight_decay") fused_decay_ = {value, i};
    }
    return OkStatus();
  }

  const DumpFile& dump_;
  JsonDoc doc_;
  std::vector<Item> scratch_;
  std::vector<ItemView> items_;
  std::optional<Number> lr_, beta1_, beta2_, eps_, addcdiv_, alpha_, momentum_, fused_decay_, decayed_, kept_,
      coupled_decay_;
  std::unordered_set<std::string> parameters_;
  double step_ = 0;
  size_t end_ = 0;        // of the step
  bool one_rate_ = true;  // of all weights
};

/// What an op of the step is given.
struct SettingHere {
  OptimizerSetting setting;
  double rate = 0;  // by which the same weight is changed; 0: not known
};

/// None where its number does not tell one.
StatusOr<std::optional<SettingHere>> SettingAt(const DumpFile& dump, size_t op) {
  StepReader reader(dump);
  MSP_RETURN_IF_ERROR(reader.Read());
  if (reader.IsBehind(op)) return std::optional<SettingHere>();  // averages of weights
  MSP_RETURN_IF_ERROR(reader.ReadAlone(op));
  // A fused step is given all of them.
  if (StartsWith(StepOf(dump.ops().NameAt(op)), "_fused_")) return std::optional<SettingHere>();
  const std::vector<OptimizerSetting> settings = reader.Settings(true);
  const auto found = std::ranges::find(settings, op, &OptimizerSetting::op);
  const auto rate = std::ranges::find(settings, "lr", &OptimizerSetting::name);
  if (found == settings.end()) return std::optional<SettingHere>();
  return std::optional(SettingHere{*found, rate == settings.end() ? 0 : rate->value});
}

/// Whether the step of one run has ops that the other's lacks.
bool StepsDiffer(const DumpPair& pair, const MatchPlan& plan) {
  const OpList& ops = pair.target->ops();
  bool own = false;
  for (size_t i = BehindBackward(ops); i < ops.size() && !own; ++i)
    own = plan.golden_of[i] == kNoOp && !plan.NotSeen(i) && !IsModuleName(ops.NameAt(i));
  if (own || plan.golden_only.empty()) return own;
  return plan.golden_only.back() >= BehindBackward(pair.golden->ops());
}

/// Whether the step of one run has all that the other's has.
bool OnlyOneHasMore(const DumpPair& pair, const MatchPlan& plan) {
  const OpList& ops = pair.target->ops();
  bool own = false;
  for (size_t i = BehindBackward(ops); i < ops.size() && !own; ++i)
    own = plan.golden_of[i] == kNoOp && !plan.NotSeen(i) && !IsModuleName(ops.NameAt(i));
  return !own || plan.golden_only.empty() || plan.golden_only.back() < BehindBackward(pair.golden->ops());
}

/// The functions of a step, by their names.
std::set<std::string_view> FunctionsOf(const OpList& ops, size_t begin, const std::function<bool(size_t)>& counts) {
  std::set<std::string_view> out;
  for (size_t i = begin; i < ops.size(); ++i) {
    if (!IsModuleName(ops.NameAt(i)) && counts(i)) out.insert(StepOf(ops.NameAt(i)));
  }
  return out;
}

/// Whether what one run has more is a whole step once more, and no other form of the same one.
bool StepsAgain(const DumpPair& pair, const MatchPlan& plan) {
  const OpList &target = pair.target->ops(), &golden = pair.golden->ops();
  const size_t begin = BehindBackward(target), golden_begin = BehindBackward(golden);
  const auto shared = FunctionsOf(target, begin, [&](size_t i) { return plan.golden_of[i] != kNoOp; });
  const auto extra =
      FunctionsOf(target, begin, [&](size_t i) { return plan.golden_of[i] == kNoOp && !plan.NotSeen(i); });
  const auto missing = FunctionsOf(golden, golden_begin, [&](size_t i) {
    return std::ranges::binary_search(plan.golden_only, static_cast<uint32_t>(i));
  });
  const bool updates = shared.contains("addcdiv") || shared.contains("lerp") || shared.contains("add");
  return updates && (std::ranges::includes(extra, shared) || std::ranges::includes(missing, shared));
}

/// Whether one run has the whole step of the other, and changes more in place.
bool ChangesMore(bool one_sided, const FirstDifference& first) {
  return one_sided && !IsModuleName(first.name) && ChangesArguments(ApiOf(first.name));
}

/// Ops of the optimizer that one run has more are no difference where they are another form of the same step.
void ForgetOtherForm(const OptimizerForms& forms, const WalkResult& walk, FirstDifference* first) {
  const size_t begin = forms.begin;
  if (forms.again || ChangesMore(forms.one_sided, *first)) return;
  const bool lone = first->kind == FirstDifference::Kind::kMissingOp || first->kind == FirstDifference::Kind::kExtraOp;
  bool differs = false;
  for (size_t i = walk.answer_at; i < walk.verdicts.size() && !differs; ++i)
    differs = walk.verdicts[i] == RulerVerdict::kInherited;
  if (lone && walk.answer_at >= begin && !differs) *first = FirstDifference();
}

/// A setting of the optimizer leads where nothing in front of its step differs.
void AddSetting(FirstDifference setting, size_t begin, size_t answer_at, Differences* out) {
  using enum FirstDifference::Kind;
  const FirstDifference::Kind kind = out->Answer().kind;
  const bool weak = kind == kNone || kind == kGrows || ((kind == kMissingOp || kind == kExtraOp) && answer_at >= begin);
  const bool behind = kind != kShape && kind != kDType && answer_at >= setting.op;
  if (!weak && !behind) {
    out->others.push_back(std::move(setting));
    return;
  }
  out->source = FirstDifference();
  out->first = std::move(setting);
}

std::string WrittenOut(double v) { return fmt::format("{:.6g}", v); }

/// Parameters that one run decays and the other only steps: groups of an optimizer have settings of their own.
void FindDecay(const std::vector<TrainedParameter>& target, const std::vector<TrainedParameter>& golden,
               const DumpPair& pair, const MatchPlan& plan, FirstDifference* out) {
  const auto counts = [](const TrainedParameter& p) { return p.telling && p.count > 0 && p.count <= p.size; };
  bool alike = false;  // some are decayed in both runs: else the steps may be of two forms
  const TrainedParameter *mine = nullptr, *theirs = nullptr;
  for (const TrainedParameter& p : target) {
    const auto other = std::ranges::find(golden, p.names, &TrainedParameter::names);
    if (other == golden.end() || !counts(p) || !counts(*other)) continue;
    alike = alike || (p.decays > 0 && other->decays > 0);
    const size_t op = p.decays > 0 ? p.decay_op : p.op;
    if ((p.decays > 0) != (other->decays > 0) && (!mine || op < (mine->decays > 0 ? mine->decay_op : mine->op)))
      mine = &p, theirs = &*other;
  }
  if (!mine || !alike) return;
  const bool extra = mine->decays > 0;
  out->kind = FirstDifference::Kind::kArgument;
  out->op = extra ? mine->decay_op : mine->op;
  out->golden_op = plan.golden_of[out->op];
  out->name = pair.target->ops().NameAt(out->op);
  out->golden_name = pair.golden->ops().NameAt(extra ? theirs->op : theirs->decay_op);
  out->item = StepOf(extra ? out->name : out->golden_name) == "add" ? ".weight_decay" : ".lr * weight_decay";
  out->owner = mine->names;
  out->difference = {"value", WrittenOut(mine->decay), WrittenOut(theirs->decay), -1};
  out->detail = "is " + out->difference.target + " against " + out->difference.golden;
  out->verdict = RulerVerdict::kBug;
}

Status FindLeftOut(const DumpPair& pair, const MatchPlan& plan, OptimizerForms* forms) {
  MSP_ASSIGN_OR_RETURN(const std::vector<TrainedParameter> target, TrainedParameters(*pair.target));
  MSP_ASSIGN_OR_RETURN(const std::vector<TrainedParameter> golden, TrainedParameters(*pair.golden));
  FirstDifference& out = forms->parameter;
  if (const auto missing = LeftOut(golden, target)) {
    out.kind = FirstDifference::Kind::kMissingOp;
    out.op = forms->begin;
    out.golden_op = static_cast<uint32_t>(missing->op);
    out.name = out.golden_name = pair.golden->ops().NameAt(missing->op);
    out.parameter = missing->names;
    out.detail = "is missing in the target";
  } else if (const auto extra = LeftOut(target, golden)) {
    out.kind = FirstDifference::Kind::kExtraOp;
    out.op = extra->op;
    out.golden_op = plan.golden_of[extra->op];
    out.name = pair.target->ops().NameAt(extra->op);
    out.parameter = extra->names;
    out.detail = "is not in the golden run";
  } else {
    FindDecay(target, golden, pair, plan, &forms->decay);
  }
  return OkStatus();
}

/// It leads where nothing in front of the step differs.
void LeadStep(FirstDifference found, size_t begin, size_t answer_at, Differences* out) {
  using enum FirstDifference::Kind;
  const FirstDifference::Kind kind = out->Answer().kind;
  if (found.of_step)  // it is made of them
    std::erase_if(out->others, [&](const FirstDifference& d) {
      return (d.kind == kExtraOp || d.kind == kMissingOp) && d.op >= begin && d.parameter.empty();
    });
  if (kind != kNone && kind != kGrows && answer_at < begin) {
    out->others.push_back(std::move(found));
    return;
  }
  out->source = FirstDifference();
  out->first = std::move(found);
}

}  // namespace

StatusOr<std::vector<OptimizerSetting>> OptimizerSettingsOf(const DumpFile& dump) {
  StepReader reader(dump);
  MSP_RETURN_IF_ERROR(reader.Read());
  return reader.Settings();
}

StatusOr<OptimizerForms> CompareOptimizers(const DumpPair& pair, const MatchPlan& plan, bool parted) {
  OptimizerForms forms;
  if (plan.fused || (plan.cross && !plan.implementations) || (!parted && !StepsDiffer(pair, plan))) return forms;
  forms.differ = true;
  forms.begin = BehindBackward(pair.target->ops());
  if (!plan.implementations) {
    MSP_RETURN_IF_ERROR(FindLeftOut(pair, plan, &forms));
    MSP_ASSIGN_OR_RETURN(forms.intake, CompareIntake(pair, plan));
    MSP_ASSIGN_OR_RETURN(forms.one_steps, OnlyOneSteps(pair));
  }
  MSP_ASSIGN_OR_RETURN(const std::vector<OptimizerSetting> target, OptimizerSettingsOf(*pair.target));
  MSP_ASSIGN_OR_RETURN(const std::vector<OptimizerSetting> golden, OptimizerSettingsOf(*pair.golden));
  forms.again = StepsAgain(pair, plan);
  forms.one_sided = OnlyOneHasMore(pair, plan);
  forms.same_settings = std::ranges::find(target, "lr", &OptimizerSetting::name) != target.end();
  for (const OptimizerSetting& a : target) {
    const auto b = std::ranges::find(golden, a.name, &OptimizerSetting::name);
    if (b == golden.end()) {
      forms.same_settings = false;
      continue;
    }
    const double scale = std::max(std::fabs(a.value), std::fabs(b->value));
    if (std::fabs(a.value - b->value) <= kSameSetting * scale) continue;
    FirstDifference& out = forms.setting;
    out.kind = FirstDifference::Kind::kArgument;
    out.op = a.op;
    out.golden_op = plan.golden_of[a.op];
    out.name = pair.target->ops().NameAt(a.op);
    out.golden_name = pair.golden->ops().NameAt(b->op);
    out.item = "." + a.name;
    out.difference = {"value", WrittenOut(a.value), WrittenOut(b->value), -1};
    out.detail = "is " + out.difference.target + " against " + out.difference.golden;
    out.verdict = RulerVerdict::kBug;
    forms.same_settings = false;
    break;
  }
  return forms;
}

Status NameSetting(const DumpPair& pair, FirstDifference* found) {
  const bool numbers = found->kind == FirstDifference::Kind::kArgument && !found->of_step && found->golden_op != kNoOp;
  if (!numbers || IsModuleName(found->name) || IsModuleName(found->module)) return OkStatus();
  if (found->op < BehindBackward(pair.target->ops()) || BehindBackward(pair.target->ops()) == 0) return OkStatus();
  MSP_ASSIGN_OR_RETURN(const auto own, SettingAt(*pair.target, found->op));
  MSP_ASSIGN_OR_RETURN(const auto other, SettingAt(*pair.golden, found->golden_op));
  if (!own || !other || own->setting.name != other->setting.name) return OkStatus();
  const auto differ = [](double a, double b) {
    return std::fabs(a - b) > kSameSetting * std::max(std::fabs(a), std::fabs(b));
  };
  std::string name = own->setting.name;
  double mine = own->setting.value, theirs = other->setting.value;
  // A weight that decays by as much, at another rate.
  if (name == "weight_decay" && !differ(mine, theirs)) name = "lr", mine = own->rate, theirs = other->rate;
  if (mine == theirs || (name == "lr" && !differ(mine, theirs))) return OkStatus();
  found->item = "." + name;
  found->argument.clear();
  found->difference = {"value", WrittenOut(mine), WrittenOut(theirs), -1};
  found->detail = "is " + found->difference.target + " against " + found->difference.golden;
  return OkStatus();
}

void WeighOptimizers(OptimizerForms forms, const WalkResult& walk, Differences* out) {
  using enum FirstDifference::Kind;
  const bool lone = out->first.kind == kMissingOp || out->first.kind == kExtraOp;
  if (forms.one_steps != OneSteps::kNo && lone && walk.answer_at >= forms.begin) {
    if (forms.one_steps == OneSteps::kUnrecorded) out->first = FirstDifference();
    out->first.of_step = out->first.kind != kNone;
    out->first.verdict = RulerVerdict::kSuspicious;  // or it steps by functions for lists, which are not recorded
    std::erase_if(out->others, [&](const FirstDifference& d) { return d.kind == kMissingOp || d.kind == kExtraOp; });
    return;
  }
  // Groups of other settings come in another order: what differs in them says more.
  const bool of_groups = forms.intake.item == ".order" || forms.intake.item == ".decays";
  const bool grouped = forms.decay.kind != FirstDifference::Kind::kNone && of_groups;
  if (grouped) return LeadStep(std::move(forms.decay), forms.begin, walk.answer_at, out);
  for (FirstDifference* found : {&forms.parameter, &forms.intake}) {
    if (found->kind == FirstDifference::Kind::kNone) continue;
    return LeadStep(std::move(*found), forms.begin, walk.answer_at, out);
  }
  // What holds for all parameters is told as that.
  const bool setting = forms.setting.kind != FirstDifference::Kind::kNone;
  const bool told = setting && forms.setting.item.ends_with("weight_decay");
  const bool decay = forms.decay.kind != FirstDifference::Kind::kNone && !told;
  if (setting) AddSetting(std::move(forms.setting), forms.begin, walk.answer_at, out);
  if (decay && setting)
    out->others.push_back(std::move(forms.decay));
  else if (decay)
    AddSetting(std::move(forms.decay), forms.begin, walk.answer_at, out);
  if (forms.same_settings) ForgetOtherForm(forms, walk, &out->first);
}

}  // namespace msprobe
