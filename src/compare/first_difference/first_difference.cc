#include "compare/first_difference/first_difference.h"

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "base/file.h"
#include "base/page_trim.h"
#include "base/parallel.h"
#include "base/text.h"
#include "compare/describe/item_difference.h"
#include "compare/describe/six_digits.h"
#include "compare/first_difference/difference_walk.h"
#include "compare/first_difference/gradient_flow.h"
#include "compare/first_difference/lone_ops.h"
#include "compare/first_difference/optimizer_intake.h"
#include "compare/first_difference/optimizer_step.h"
#include "compare/first_difference/other_differences.h"
#include "compare/first_difference/other_form.h"
#include "compare/first_difference/outside_value.h"
#include "compare/first_difference/parameter_owner.h"
#include "compare/first_difference/same_data.h"
#include "compare/first_difference/unrecorded.h"
#include "compare/first_difference/value_maker.h"
#include "compare/first_difference/walk_parts.h"
#include "compare/pair/divided_step.h"
#include "compare/pair/flat_reduction.h"
#include "compare/pair/op_at.h"
#include "compare/pair/order_plan.h"
#include "compare/pair/place_plan.h"
#include "compare/round_off/at_place.h"
#include "compare/round_off/norm_mode.h"
#include "compare/round_off/other_call.h"
#include "compare/round_off/settings.h"
#include "compare/values/item_views.h"
#include "ops/op_name.h"
#include "ops/op_traits.h"

namespace msprobe {
namespace {

std::string InputsText(double worst) {
  return worst < 0 ? "" : worst == 0 ? "are equal" : fmt::format("agree to {:.2g}", worst);
}

class Describer {
  using Kind = FirstDifference::Kind;

 public:
  Describer(const DumpPair& pair, const MatchPlan& plan, const OpDistances& distances, const ModuleTree& target,
            const ModuleTree& golden)
      : pair_(pair), plan_(plan), distances_(distances), target_(target), golden_(golden) {}

  /// Fills the texts of what the walk found.
  Status Fill(FirstDifference* out) const {
    if (out->kind == Kind::kNone) return OkStatus();
    if (out->kind == Kind::kMissingOp) return FillMissing(out);
    out->name = pair_.target->ops()[out->op].name;
    out->golden_op = plan_.golden_of[out->op];
    if (out->golden_op != kNoOp) out->golden_name = pair_.golden->ops()[out->golden_op].name;
    out->module = IsModuleName(out->name) ? std::string_view() : target_.ParentOf(out->name);
    for (const uint32_t op : pair_.plan.JoinedWith(out->op)) out->fused.emplace_back(pair_.target->ops().NameAt(op));
    out->recomputed = IsRecomputed(out->name);
    MSP_ASSIGN_OR_RETURN(out->owner, ParameterOwner(*pair_.target, out->op));
    if (out->kind == Kind::kExtraOp) {
      out->detail = "is not in the golden run";
      out->instead = StandsFor(pair_, plan_, target_, golden_, out->name, false);
    } else if (out->difference.what != "requires_grad") {
      MSP_RETURN_IF_ERROR(FillValues(out));
    }
    if (out->kind == Kind::kShape && (IsModuleName(out->name) || !out->module.empty())) {
      MSP_ASSIGN_OR_RETURN(out->pieces, IsSameDataInPieces(pair_, out->name, out->item));
    }
    if (out->kind == Kind::kShape) out->alone = IsOfOneProcess(*pair_.target) && IsOfOneProcess(*pair_.golden);
    if (out->pieces) {
      MSP_ASSIGN_OR_RETURN(out->factor, FactorOfGradients(pair_));
    }
    return FillFrame(pair_.stacks ? &*pair_.stacks : nullptr, out);
  }

 private:
  /// The forward pass of a module within the backward pass. A function alone is of a hook or of a Function's backward.
  bool IsRecomputed(std::string_view name) const {
    bool out = false, module = IsModuleName(name);
    if (ParseOpName(name).direction != OpDirection::kForward) return false;
    target_.ForEachAround(name, [&](std::string_view around) {
      out = ParseOpName(around).direction == OpDirection::kBackward;
      return !out && (module = true);
    });
    return out && module;
  }

  Status FillMissing(FirstDifference* out) const {
    out->name = out->golden_name = pair_.golden->ops()[out->golden_op].name;
    out->module = golden_.ParentOf(out->name);
    out->detail = "is missing in the target";
    out->instead = StandsFor(pair_, plan_, target_, golden_, out->name, true);
    const std::string path = JoinPath(DirName(pair_.golden->path()), "stack.json");
    if (!IsRegularFile(path)) return OkStatus();
    const StatusOr<StackFile> stacks = StackFile::Open(path);
    return stacks.ok() ? FillFrame(&*stacks, out) : OkStatus();  // a place in the source is a help, no more
  }

  Status FillValues(FirstDifference* out) const {
    JsonDoc a, b;
    OpDiff diff;
    MSP_RETURN_IF_ERROR(DiffOpWith(pair_, out->op, out->golden_op, &a, &b, &diff));
    const CompareMode mode = pair_.options.mode;
    const size_t operand = OtherOperand(diff);
    const bool worst = out->kind == Kind::kOp || (out->kind == Kind::kInput && WorstRow(diff, false) == operand);
    if (operand < diff.rows_used && worst) out->kind = Kind::kArgument;
    if (out->kind == Kind::kArgument) {
      DescribeArgument(diff, mode, out);
    } else if (out->kind == Kind::kDType) {
      DescribeDType(diff, out);
    } else {
      const bool outputs = out->kind != Kind::kInput && out->kind != Kind::kShape;
      const size_t row = !out->item.empty() ? RowOf(diff, out->item)
                         : out->hidden      ? HiddenRow(diff)
                                            : WorstRow(diff, outputs);
      if (row < diff.rows_used) {
        SetItem(diff, diff.target[row], out);
        if (!out->hidden) out->difference = DifferenceOf(diff, row, mode);
        out->detail = out->hidden ? "holds infinities, and statistics do not show where" : DetailOf(out->difference);
        const int partner = diff.rows[row].golden;
        const ItemView* golden = partner == kNoItem ? nullptr : &diff.golden[static_cast<size_t>(partner)];
        out->reordered = !outputs && mode == CompareMode::kStatistics && IsReordered(diff, row);
        if (out->kind == Kind::kInput) out->exchanged = ExchangedWith(diff, row);
        if (!outputs) MSP_RETURN_IF_ERROR(OutsideValue(pair_, distances_, target_).Fill(diff.target[row], golden, out));
        if (out->kind == Kind::kInput) SetGradient(out);
        if (out->kind == Kind::kInput && golden && !out->reordered && out->exchanged.empty() && out->inside.empty())
          MSP_RETURN_IF_ERROR(NameMakers(pair_, plan_, diff.target[row], *golden, out));
        if (out->kind == Kind::kInput && plan_.implementations && out->inside.empty())
          MSP_RETURN_IF_ERROR(FillMadeBy(diff.target[row], out));
      }
    }
    const NormModes modes = NormModesOf(diff);
    if (modes.AreOthers()) TellMode(diff, modes, out);
    out->other_call = IsOtherCall(diff);
    const double input_error = InputErrorOf(diff, mode, out->other_mode);
    if (out->kind != Kind::kDType && !out->other_call) out->inputs = InputsText(input_error);
    const ShownErrors shown = ShownErrorsOf(diff, mode);
    out->input_error = out->other_mode ? input_error : shown.input;
    out->output_error = shown.output;
    return OkStatus();
  }

  /// Of a backward call, and of what the optimizer and clipping take behind the backward pass.
  void SetGradient(FirstDifference* out) const {
    const OpList& ops = pair_.target->ops();
    const bool first = out->item == ".input.0" || out->item.starts_with(".input.0.");
    const bool updates = out->op >= BehindBackward(ops) && !IsModuleName(out->name) && !IsModuleName(out->module);
    out->state = out->state && first;
    out->gradient = !out->state && (updates || ParseOpName(out->name).direction == OpDirection::kBackward);
  }

  /// The function of the target that made what comes in: of two programs functions have no partners.
  Status FillMadeBy(const ItemView& item, FirstDifference* out) const {
    constexpr size_t kMostLookedAt = 4096;
    const std::string looks = LooksOf(item);
    ItemViews items(*pair_.target, pair_.options.mode);
    for (size_t i = out->op, seen = 0; i-- > 0 && seen < kMostLookedAt && !looks.empty(); ++seen) {
      FirstDifference maker;
      maker.name = pair_.target->ops().NameAt(i);
      if (IsModuleName(maker.name) || plan_.golden_of[i] != kNoOp) continue;
      MSP_RETURN_IF_ERROR(items.Read(i));
      const auto made = [&](const ItemView& one) { return one.state == ItemState::kOutput && LooksOf(one) == looks; };
      if (std::ranges::none_of(items.items(), made)) continue;
      MSP_RETURN_IF_ERROR(FillFrame(pair_.stacks ? &*pair_.stacks : nullptr, &maker));
      out->after = maker.name + (maker.frame.empty() ? "" : " (" + maker.frame + ")");
      break;
    }
    return OkStatus();
  }

  /// The mode explains what a norm gives, and that its running statistics part; what it is given does not.
  void TellMode(const OpDiff& diff, const NormModes& modes, FirstDifference* out) const {
    const bool kept = out->kind == Kind::kParameter && IsRunningStatistic(out->parameter);
    if (!kept && out->kind != Kind::kOp) return;
    const size_t row = RowOf(diff, ".output.0");
    if (row == diff.rows_used || diff.rows[row].golden == kNoItem) return;
    out->kind = Kind::kOp;
    out->parameter.clear();
    out->buffer = false;
    out->other_mode = true;
    out->evaluates = modes.target == NormMode::kKept;
    out->item = diff.target[row].suffix;
    out->difference = DifferenceOf(diff, row, pair_.options.mode);
    out->detail = DetailOf(out->difference);
  }

  static size_t RowOf(const OpDiff& diff, std::string_view item) {
    size_t i = 0;
    while (i < diff.rows_used && diff.target[i].suffix != item) ++i;
    return i;
  }

  /// The input that holds infinities; the last one, as masks are put behind what they mask.
  static size_t HiddenRow(const OpDiff& diff) {
    for (size_t i = diff.rows_used; i-- > 0;) {
      const StatValue& norm = diff.target[i].stats[kNorm];
      const bool endless = norm.IsNanOrInf() || (norm.IsNumber() && !std::isfinite(norm.AsDouble()));
      if (!endless || IsResult(diff.target[i].state)) continue;
      // A number that is filled in tells nothing; the mask of the call does not show either where it is true.
      const auto mask = std::ranges::find_if(diff.target.begin(), diff.target.begin() + static_cast<long>(i),
                                             [](const ItemView& item) { return item.dtype == "torch.bool"; });
      const size_t at = static_cast<size_t>(mask - diff.target.begin());
      return diff.target[i].shape == "[]" && at < i ? at : i;
    }
    return 0;
  }

  size_t WorstRow(const OpDiff& diff, bool outputs) const {
    const double tolerance = OpTolerance(diff);
    double worst = -1;
    size_t found = diff.rows_used;
    for (size_t i = 0; i < diff.rows_used; ++i) {
      if (IsResult(diff.target[i].state) != outputs || diff.rows[i].golden == kNoItem) continue;
      const double distance = RowDistance(diff, i, pair_.options.mode, tolerance);
      if (distance <= worst) continue;
      worst = distance;
      found = i;
    }
    return found;
  }

  static Status FillFrame(const StackFile* stacks, FirstDifference* out) {
    if (!stacks) return OkStatus();
    const NameParts name = ParseOpName(out->name);
    auto stack = stacks->StackOf(out->name);
    if (!stack && name.direction == OpDirection::kBackward) stack = stacks->StackOf(ForwardNameOf(name));
    if (stack) UserFrame(stacks->Frames(*stack), &out->frame, &out->function);
    return OkStatus();
  }

  const DumpPair& pair_;
  const MatchPlan& plan_;
  const OpDistances& distances_;
  const ModuleTree &target_, &golden_;
};

/// Measures ops again that another plan pairs differently.
Status Remeasure(const DumpPair& pair, const MatchPlan& plan, OpDistances* distances) {
  constexpr size_t kOpsPerTask = 256;
  static_assert(kOpsPerTask <= kStepsBetweenTrims);
  const auto measure = [&](size_t task) -> Status {
    TrimMaps();
    JsonDoc a, b;
    OpDiff diff;
    for (size_t i = task * kOpsPerTask; i < std::min(distances->size(), (task + 1) * kOpsPerTask); ++i) {
      const std::string_view name = pair.target->ops().NameAt(i);
      if (plan.golden_of[i] == pair.plan.golden_of[i] || HasArbitraryValues(name)) continue;
      MSP_RETURN_IF_ERROR(DiffOpWith(pair, i, plan.golden_of[i], &a, &b, &diff));
      (*distances)[i] = DistanceOf(diff, pair.options.mode);
    }
    return OkStatus();
  };
  return ParallelFor((distances->size() + kOpsPerTask - 1) / kOpsPerTask, measure);
}

size_t Disagreeing(const OpDistances& distances) {
  return static_cast<size_t>(
      std::ranges::count_if(distances, [](const OpDistance& d) { return std::max(d.input, d.output) > 1; }));
}

Status DescribeAll(const Describer& describer, Differences* out) {
  for (FirstDifference* d : {&out->first, &out->source, &out->dtype}) MSP_RETURN_IF_ERROR(describer.Fill(d));
  for (FirstDifference& d : out->others) MSP_RETURN_IF_ERROR(describer.Fill(&d));
  // What differs by itself leads, not what was drawn.
  if (out->Answer().kind == FirstDifference::Kind::kDraw && !out->others.empty()) {
    out->first = std::move(out->others.front());
    out->others.erase(out->others.begin());
  }
  if (out->source.kind == FirstDifference::Kind::kDraw) out->first.drawn = out->source.name;
  return OkStatus();
}

/// Where an op is called otherwise and its result differs, but nothing behind it does, what follows makes it good: the
/// runs only compute a value in two ways, as a mean that is a sum divided later.
void ForgetWhatIsMadeGood(const WalkInput& in, WalkResult* walk) {
  constexpr size_t kFewest = 4;  // gradients that agree
  const FirstDifference& first = walk->first;
  const OpList& ops = in.pair.target->ops();
  const bool both = in.plan.target_only() > 0 || !in.plan.golden_only.empty();
  if (first.kind != FirstDifference::Kind::kArgument || walk->source.kind != FirstDifference::Kind::kNone || !both)
    return;
  if (in.plan.cross || in.distances[first.op].output <= 1) return;
  size_t agree = 0;
  std::vector<size_t> own{first.op};  // and its backward call, of whatever number
  for (size_t i = first.op + 1; i < ops.size(); ++i) {
    const NameParts name = ParseOpName(ops.NameAt(i));
    const bool backward = name.direction == OpDirection::kBackward;
    if (Begins(walk->verdicts[i]) || walk->verdicts[i] == RulerVerdict::kInherited) {
      const bool own_call = backward || in.distances[i].argument;  // or one more of these
      if (!own_call || ApiOf(name.full) != ApiOf(ops.NameAt(first.op))) return;
      own.push_back(i);
    } else if (backward && walk->verdicts[i] != RulerVerdict::kNone) {
      ++agree;
    }
  }
  if (agree < kFewest) return;
  for (const size_t i : own) {
    walk->verdicts[i] = walk->contexts[i].verdict = RulerVerdict::kRewritten;
  }
  walk->first = FirstDifference();
  walk->answer_at = ops.size();
}

/// The modules with parameters that only one run calls explain that only its step changes them.
void BlameOneSided(const WalkInput& in, OptimizerForms* forms) {
  FirstDifference& intake = forms->intake;
  // A parameter that is one of several is more likely that of such a module.
  const bool lacks = forms->parameter.kind == FirstDifference::Kind::kMissingOp;
  if (Contains(forms->parameter.parameter, " or ") &&
      std::ranges::any_of(in.one_sided, [&](const OneSidedModule& m) { return m.golden == lacks; }))
    forms->parameter = FirstDifference();
  if (intake.item != ".parameters") return;
  const bool golden = std::stoul(intake.difference.target) < std::stoul(intake.difference.golden);
  const auto module = std::ranges::find(in.one_sided, golden, &OneSidedModule::golden);
  if (module == in.one_sided.end()) return;
  FirstDifference found;
  found.kind = golden ? FirstDifference::Kind::kMissingOp : FirstDifference::Kind::kExtraOp;
  found.op = golden ? intake.op : module->op;
  found.golden_op = golden ? module->op : kNoOp;
  found.verdict = RulerVerdict::kSuspicious;
  intake = std::move(found);
}

/// What the gradients that only one run has, and the steps of the two optimizers say.
Status AddOptimizer(const Describer& describer, const WalkInput& in, const WalkResult& walk, Differences* out) {
  const DumpPair& pair = in.pair;
  const MatchPlan& plan = in.plan;
  MSP_ASSIGN_OR_RETURN(FirstDifference flow, GradientFlow(in, *out, walk.answer_at));
  if (flow.kind != FirstDifference::Kind::kNone) {
    // What the backward pass and the step lack follows from it; what a call is given by its code does not.
    out->source = FirstDifference();
    std::erase_if(out->others, [](const FirstDifference& d) { return d.kind != FirstDifference::Kind::kArgument; });
    out->first = std::move(flow);
    MSP_RETURN_IF_ERROR(describer.Fill(&out->first));
    for (FirstDifference& d : out->others) MSP_RETURN_IF_ERROR(NameSetting(pair, &d));
    DropRepeated(out);
    return OkStatus();
  }
  MSP_ASSIGN_OR_RETURN(const bool clips, BlameClipping(pair, plan, walk, out));
  if (clips) MSP_RETURN_IF_ERROR(describer.Fill(&out->first));
  const bool parted =
      out->Answer().kind == FirstDifference::Kind::kShape && out->Answer().op >= BehindBackward(pair.target->ops());
  MSP_ASSIGN_OR_RETURN(OptimizerForms forms, CompareOptimizers(pair, plan, parted));
  BlameOneSided(in, &forms);
  if (forms.intake.item == ".parameters") {
    const bool fewer = std::stoul(forms.intake.difference.target) < std::stoul(forms.intake.difference.golden);
    MSP_ASSIGN_OR_RETURN(FirstDifference frozen, FrozenWeight(in, fewer));
    if (frozen.kind != FirstDifference::Kind::kNone) forms.intake = std::move(frozen);
  }
  WeighOptimizers(std::move(forms), walk, out);
  if (out->first.name.empty()) MSP_RETURN_IF_ERROR(describer.Fill(&out->first));
  FirstDifference& first = out->first;
  if (first.kind == FirstDifference::Kind::kArgument && first.module.empty() && !IsModuleName(first.name))
    first.module = in.target_tree.ParentOf(first.name);
  MSP_RETURN_IF_ERROR(NameSetting(pair, &first));
  for (FirstDifference& d : out->others) {
    if (d.name.empty()) MSP_RETURN_IF_ERROR(describer.Fill(&d));
    MSP_RETURN_IF_ERROR(NameSetting(pair, &d));
  }
  std::erase_if(out->others,
                [&](const FirstDifference& d) { return d.kind == out->first.kind && d.name == out->first.name; });
  DropRepeated(out);
  return OkStatus();
}

}  // namespace

std::string_view DifferenceKindText(FirstDifference::Kind kind) {
  switch (kind) {
    case FirstDifference::Kind::kNone: return "none";
    case FirstDifference::Kind::kOp: return "op";
    case FirstDifference::Kind::kCommunication: return "communication";
    case FirstDifference::Kind::kInput: return "input";
    case FirstDifference::Kind::kParameter: return "parameter";
    case FirstDifference::Kind::kArgument: return "argument";
    case FirstDifference::Kind::kShape: return "shape";
    case FirstDifference::Kind::kMissingOp: return "missing_op";
    case FirstDifference::Kind::kExtraOp: return "extra_op";
    case FirstDifference::Kind::kDType: return "dtype";
    case FirstDifference::Kind::kGrows: return "grows";
    case FirstDifference::Kind::kDraw: return "draw";
  }
  return "";
}

StatusOr<Differences> FindDifferences(const DumpPair& pair, OpDistances distances, const BigArray<float>* calibrated) {
  Differences out;
  out.implementations = pair.plan.implementations;
  Message golden_warning;
  const std::shared_ptr<const ModuleTree> tree = pair.trees->Target(&out.warning);
  // Where every op has its partner nobody asks for the golden run's hierarchy.
  const bool all_paired = pair.plan.target_only() == 0 && pair.plan.golden_only.empty();
  const bool other_order = all_paired && HasOtherOrder(pair);
  const auto golden =
      all_paired && !other_order ? std::make_shared<const ModuleTree>() : pair.trees->Golden(&golden_warning);
  const ModuleTree &target_tree = *tree, &golden_tree = *golden;
  MatchPlan aligned;
  if (other_order) {
    MSP_ASSIGN_OR_RETURN(aligned, AlignByPlace(pair, target_tree, golden_tree));
    OpDistances placed = distances;
    MSP_RETURN_IF_ERROR(Remeasure(pair, aligned, &placed));
    // Two calls in each other's place are another form of one computation: there names say more.
    if (Disagreeing(placed) < Disagreeing(distances)) {
      distances = std::move(placed);
    } else {
      aligned = MatchPlan();
    }
  } else {
    MSP_ASSIGN_OR_RETURN(aligned, AlignByOrder(pair, target_tree, golden_tree));
    if (!aligned.golden_of.empty()) MSP_RETURN_IF_ERROR(Remeasure(pair, aligned, &distances));
  }
  bool realigned = !aligned.golden_of.empty();
  if (!all_paired) {
    MatchPlan left = realigned ? aligned : pair.plan;
    MSP_ASSIGN_OR_RETURN(out.divided, LeaveOutDividedStep(pair, target_tree, golden_tree, &left));
    MSP_ASSIGN_OR_RETURN(const size_t buckets, LeaveOutBuckets(pair, target_tree, golden_tree, &left));
    MSP_ASSIGN_OR_RETURN(const size_t flat, LeaveOutFlatReductions(pair, target_tree, golden_tree, &left));
    out.divided += buckets + flat;
    if (out.divided > 0) aligned = std::move(left), realigned = true;
  }
  const bool everywhere = CountDTypes(pair.target->ops(), distances, &out);
  const MatchPlan& plan = realigned ? aligned : pair.plan;
  MSP_ASSIGN_OR_RETURN(OtherForms other_forms, LeaveOutOtherForms(pair, plan, &distances));
  AddOtherCalls(pair, plan, distances, target_tree, &other_forms.calls);
  WalkInput input{pair, plan, distances, target_tree, golden_tree};
  input.other_forms = std::move(other_forms.calls);
  input.calibrated = calibrated;
  input.everywhere_other_dtype = everywhere;
  if (!all_paired) {
    MSP_ASSIGN_OR_RETURN(input.one_sided, OneSidedModules(pair, plan, target_tree, golden_tree));
  }
  WalkResult walk;
  Unrecorded unrecorded;
  MSP_RETURN_IF_ERROR(ParallelFor(2, [&](size_t task) -> Status {
    if (task == 1) return CountUnrecorded(*pair.target, target_tree, &unrecorded);
    MSP_ASSIGN_OR_RETURN(walk, WalkOps(input));
    MoveToParameter(input, &walk);
    MSP_RETURN_IF_ERROR(MoveToAssignment(input, &walk));
    ForgetWhatIsMadeGood(input, &walk);
    MSP_RETURN_IF_ERROR(FindMaker(input, &walk));
    return BlameIdle(input, &walk);
  }));
  out.other_forms = other_forms.modules;
  out.first_other_form = other_forms.first;
  out.unrecorded = unrecorded.modules;
  out.first_unrecorded = std::move(unrecorded.first);
  const Describer describer(pair, plan, distances, target_tree, golden_tree);
  MSP_ASSIGN_OR_RETURN(out.others, OtherDifferences(input, walk));
  out.first = std::move(walk.first);
  out.source = std::move(walk.source);
  MSP_RETURN_IF_ERROR(DescribeAll(describer, &out));
  MSP_RETURN_IF_ERROR(AddOptimizer(describer, input, walk, &out));
  for (const RulerVerdict v : walk.verdicts) out.ruler.Add(v);
  out.rounds_parameters = std::ranges::any_of(distances, &OpDistance::rounded_parameter);
  out.draws_alike = walk.draws_alike;
  CountInfected(input, walk, &out);
  out.seen_op = walk.answer_at;
  if (walk.answer_at < plan.golden_of.size()) out.seen_golden = plan.golden_of[walk.answer_at];
  out.verdicts = std::move(walk.verdicts);
  out.contexts = std::move(walk.contexts);
  out.tree = tree;
  for (const OneSidedModule& module : input.one_sided)
    (module.golden ? out.golden_modules : out.target_modules).emplace_back(module.name);
  return out;
}

bool UserFrame(const std::vector<std::string>& frames, std::string* place, std::string* function) {
  constexpr std::string_view kFile = "File ", kLine = ", line ", kIn = ", in ";
  for (const std::string& frame : frames) {
    const size_t line = frame.find(kLine);
    if (!StartsWith(frame, kFile) || line == std::string::npos) continue;
    const std::string_view path = std::string_view(frame).substr(kFile.size(), line - kFile.size());
    if (Contains(path, "/torch/") || Contains(path, "/mindspore/") || Contains(path, "/msprobe/")) continue;
    const size_t number = line + kLine.size();
    const size_t comma = frame.find(',', number);
    if (comma == std::string::npos) continue;
    *place = std::string(BaseName(path)) + ":" + frame.substr(number, comma - number);
    if (frame.compare(comma, kIn.size(), kIn) == 0) {
      const size_t from = comma + kIn.size();
      *function = frame.substr(from, frame.find(',', from) - from);
    }
    return true;
  }
  return false;
}

}  // namespace msprobe
