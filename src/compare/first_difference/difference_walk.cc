#include "compare/first_difference/difference_walk.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "base/page_trim.h"
#include "base/text.h"
#include "compare/first_difference/lone_ops.h"
#include "compare/first_difference/parameter_owner.h"
#include "compare/first_difference/random_draw.h"
#include "compare/first_difference/rewrites.h"
#include "compare/first_difference/unwritten_flow.h"
#include "compare/first_difference/walk_parts.h"
#include "ops/collective.h"
#include "ops/op_name.h"
#include "ops/op_traits.h"

namespace msprobe {
namespace {

using Kind = FirstDifference::Kind;

constexpr float kCoarsestTravels = 1.6e-2f;  // tolerance of bfloat16; that of float8 would hide too much
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kSameStatistics = 0x1p-22f;  // equal statistics leave so much room for what is in them
constexpr size_t kFew = 16;                  // ops behind an argument whose change shows only amid rounding
constexpr float kJustAbove = 1.01f;
constexpr float kNormRoom = 0.25f;  // of a tolerance: what rounding leaves in a norm

bool Differs(float distance) { return distance > 1; }

class Walk {
 public:
  explicit Walk(const WalkInput& in)
      : in_(in),
        ops_(in.pair.target->ops()),
        containers_(in.target_tree),
        rewrites_(in.pair, in.plan, in.distances, in.target_tree, in.golden_tree, in.everywhere_other_dtype),
        lone_(in, &rewrites_),
        unwritten_(in),
        draws_(in, &out_.draws_alike),
        answer_at_(ops_.size()) {
    out_.verdicts.assign(ops_.size(), RulerVerdict::kNone);
    out_.contexts.resize(ops_.size());
  }

  StatusOr<WalkResult> Run() {
    size_t golden_only = 0;
    for (size_t i = 0; i < ops_.size(); ++i) {
      if (i % kStepsBetweenTrims == 0) TrimMaps();
      const uint32_t g = in_.plan.golden_of[i];
      for (; g != kNoOp && golden_only < in_.plan.golden_only.size() && in_.plan.golden_only[golden_only] < g;
           ++golden_only)
        lone_.Add(true, in_.plan.golden_only[golden_only], i);
      if (in_.plan.NotSeen(i)) {
        continue;
      } else if (g == kNoOp) {
        lone_.Add(false, static_cast<uint32_t>(i), i);
      } else if (in_.distances[i].matched) {
        MSP_RETURN_IF_ERROR(Visit(i));
      }
    }
    for (; golden_only < in_.plan.golden_only.size(); ++golden_only)
      lone_.Add(true, in_.plan.golden_only[golden_only], ops_.size());
    MSP_RETURN_IF_ERROR(rewrites_.status());
    Finish();
    const bool both = out_.source.kind == Kind::kInput && out_.first.kind == Kind::kOp;
    if (both && IsBackwardOfRewritten(in_, out_.verdicts, out_.source.op)) {
      out_.verdicts[out_.source.op] = RulerVerdict::kRewritten;
      out_.source = {};
      answer_at_ = out_.first.op;
    }
    if (out_.first.kind == Kind::kArgument) out_.verdicts[out_.first.op] = out_.first.verdict;  // a call around others
    for (size_t i = 0; i < ops_.size(); ++i) out_.contexts[i].verdict = out_.verdicts[i];
    out_.answer_at = answer_at_;
    if (!idle_.empty()) out_.idle = idle_.first, out_.idle_more = idle_.more_calls;
    out_.own_ops = lone_.makers(false);
    out_.golden_own_ops = lone_.makers(true);
    return std::move(out_);
  }

 private:
  /// A backward op can only be judged when the values that its forward kept are known to agree. What has no inputs in
  /// the dump (gradients of parameters, saved values) can only be the first difference of all.
  bool ForwardAgrees(const NameParts& op) const {
    if (op.direction == OpDirection::kForward) return true;
    if (op.direction != OpDirection::kBackward) return !anything_;
    const auto forward = in_.pair.target->FindOp(ForwardNameOf(op));
    if (!forward) return !anything_;
    return !Differs(Scaled(*forward, in_.distances[*forward].input)) &&
           !Differs(Scaled(*forward, in_.distances[*forward].output));
  }

  /// In units of the coarsest round-off up to the op.
  float Scaled(size_t i, float distance) const {
    const float own = in_.distances[i].tolerance;
    return own == 0 ? distance : distance * own / std::max(coarsest_, own);
  }

  /// A factor that was computed (of clipping, of a loss) differs by no more than what it may have been made of.
  OpDistance Measured(size_t i) const {
    OpDistance d = in_.distances[i];
    if (d.shapes && !anything_) TakeInOtherOrder(in_, i, &d);
    if (d.argument && inexact_ && d.computed <= std::min(drift_, coarsest_)) {
      d.argument = d.setting = false;
      d.input = d.rounded;
      d.input_error = std::max(d.input_error, d.computed);
    }
    return d;
  }

  Status Visit(size_t i) {
    const OpDistance d = Measured(i);
    if (!IsExactInOtherClass(in_, i)) coarsest_ = std::max(coarsest_, std::min(d.tolerance, kCoarsestTravels));
    RulerContext& context = out_.contexts[i];
    context.inherits = anything_;
    context.travelled = inexact_ ? coarsest_ : 0;
    cancelled_ = std::max(cancelled_, d.cancelled);
    if (in_.calibrated) context.calibrated = (*in_.calibrated)[in_.plan.golden_of[i]];
    if (!anything_ && d.has_output && !Differs(Scaled(i, d.conditioned))) last_agreeing_ = i + 1;
    const bool equal_inputs =
        !d.other_call && d.rounded == 0 && d.input_error == 0 && !d.chosen && !d.argument && !d.shapes;
    if (equal_inputs && d.output == 0 && d.output_error == 0) {
      if (d.has_output) MSP_RETURN_IF_ERROR(draws_.NoteEqual(i));
      out_.verdicts[i] = (d.has_input || d.has_output) && !d.unread ? RulerVerdict::kBitEqual : RulerVerdict::kNone;
      return OkStatus();
    }
    if (!anything_) {
      MSP_ASSIGN_OR_RETURN(const bool unwritten, unwritten_.Explains(i));
      if (unwritten) return OkStatus();
    }
    if (d.dtypes && !inexact_ && !anything_ && !in_.everywhere_other_dtype && !in_.plan.implementations) {
      out_.verdicts[i] = Blame(Kind::kDType, i, RulerVerdict::kSuspicious, d.output);
      inexact_ = true;
      containers_.AddAncestorsOf(ParseOpName(ops_.NameAt(i)));
      return OkStatus();
    }
    const bool apart = Differs(Scaled(i, d.input)) || Differs(Scaled(i, d.output));
    const bool inside = apart && !anything_ && IsInOtherForm(in_, ops_.NameAt(i));  // what the module gives will tell
    if (inside || (!anything_ && !d.parameter && IsRewritten(i, d))) {
      out_.verdicts[i] = VisitRewritten(i, d);
      return OkStatus();
    }
    if (apart && inexact_ && !anything_ && !d.argument && !d.shapes && IsOfRoundedZero(i)) {
      out_.verdicts[i] = RulerVerdict::kRoundOff;
      return OkStatus();
    }
    MSP_ASSIGN_OR_RETURN(const bool draw, draws_.AreOthers(i));
    if (draw) return VisitDraw(i), OkStatus();
    const bool exact = equal_inputs && (!inexact_ || (!anything_ && IsOfNumbers(ops_.NameAt(i), d)));
    out_.verdicts[i] = exact ? VisitExact(i, d) : VisitRounded(i, d);
    if (out_.verdicts[i] == RulerVerdict::kRewritten) return inexact_ = true, OkStatus();
    const bool idle = d.argument && i == idle_.last;
    const float least = Resplit() && !anything_ ? StandsOut() : 1;
    if (!idle && (Scaled(i, d.input) > least || Scaled(i, d.output) > least || d.shapes))
      containers_.AddAncestorsOf(ParseOpName(ops_.NameAt(i)));
    inexact_ = inexact_ || d.chosen || d.input_error > 0 || d.output_error > 0 || d.output > 0;
    for (const float error : {d.input_error, d.output_error}) {
      if (std::isfinite(error)) drift_ = std::max(drift_, error);
    }
    return OkStatus();
  }

  bool IsRewritten(size_t i, const OpDistance& d) {
    const std::string_view name = ops_.NameAt(i);
    // The same op of the same tensors, called otherwise: a setting, not another way.
    const bool same_call = d.has_input && d.rounded <= 1 && !d.chosen && !d.shapes;
    if (d.argument && same_call && !OnlyMovesOrCasts(name) && !rewrites_.IsUndone(i)) return false;
    // Modules are paired by their names: one that gives something else for the same input is no other module.
    if ((IsModuleName(name) && same_call) || IsOfNumbers(ops_.NameAt(i), d)) return false;
    if (rewrites_.Cover(name, false, i)) return true;
    return inexact_ && d.has_output && d.values && !Differs(d.output) && rewrites_.Knows(name, false);
  }

  /// Inside a module that agrees: what differs here is computed another way, and the result is the same.
  RulerVerdict VisitRewritten(size_t i, const OpDistance& d) {
    inexact_ = true;
    const bool apart =
        Differs(Scaled(i, d.input)) || Differs(Scaled(i, d.output)) || d.argument || d.shapes || d.chosen;
    if (apart) rewrites_.Learn(ops_.NameAt(i), false);
    if (apart && !in_.one_sided.empty()) {
      lone_.AddReplaced(ops_.NameAt(i), false);
      lone_.AddReplaced(in_.pair.golden->ops().NameAt(in_.plan.golden_of[i]), true);
    }
    return apart ? RulerVerdict::kRewritten : RulerVerdict::kRoundOff;
  }

  /// Gradients that are zero but for rounding, and the step that an optimizer makes of such a one.
  bool IsOfRoundedZero(size_t i) {
    const OpDistance& d = in_.distances[i];
    // What cancels out goes on to the op behind it.
    if (cancelled_ > 0 && d.amplitude > 0 && d.amplitude <= kJustAbove * cancelled_ &&
        Contains(ops_.NameAt(i), ".backward"))
      return true;
    const bool step = rounded_zero_ + 1 == i && !IsModuleName(in_.target_tree.ParentOf(ops_.NameAt(i)));
    if (!rewrites_.IsRoundedZero(i)) return step;
    rounded_zero_ = i;
    return true;
  }

  /// Nothing behind it is as in the other run, and that is no fault: the search goes on for what differs by itself.
  void VisitDraw(size_t i) {
    const bool first = !anything_;
    if (first) Blame(Kind::kDraw, i, RulerVerdict::kNone, 0);
    inexact_ = true;
    containers_.AddAncestorsOf(ParseOpName(ops_.NameAt(i)));
    out_.verdicts[i] = first ? RulerVerdict::kNone : Inherit(i);
  }

  /// Everything before is bit-equal, the inputs too: only this op's own rounding is between the outputs.
  RulerVerdict VisitExact(size_t i, const OpDistance& d) {
    const NameParts name = ParseOpName(ops_.NameAt(i));
    if (d.blind || containers_.Contains(name)) return Inherit(i);
    if (!ForwardAgrees(name)) return Inherit(i);
    const float calibrated = 2 * out_.contexts[i].calibrated;
    if (!d.few && in_.pair.options.mode == CompareMode::kStatistics && d.output_error <= kSameStatistics)
      return RulerVerdict::kRoundOff;
    if (d.expected <= 1 || (calibrated > 0 && d.output_error <= calibrated)) return RulerVerdict::kRoundOff;
    const bool bug = d.values && d.worst > 1 && !d.mask && !OnlyChecksumsDiffer(in_, d, d.output_error);
    const RulerVerdict verdict = bug ? RulerVerdict::kBug : RulerVerdict::kSuspicious;
    return BlameOutput(i, verdict, d.expected);
  }

  /// Where statistics do not show at which places an input holds infinities, it came in there.
  RulerVerdict BlameOutput(size_t i, RulerVerdict verdict, float units) {
    if (!anything_ && (IsMadeGood(in_, i) || IsOtherGradient(in_, i))) return RulerVerdict::kRewritten;
    if (const auto around = anything_ ? std::nullopt : EnteredAround(in_, i))
      return Blame(Kind::kInput, *around, RulerVerdict::kBug, in_.distances[*around].input), Inherit(i);
    if (!anything_ && !inexact_ && in_.distances[i].input_error > 0 && IsReordered(in_, i))
      return Blame(Kind::kInput, i, RulerVerdict::kSuspicious, units);
    return Blame(in_.distances[i].masked && !anything_ ? Kind::kInput : Kind::kOp, i, verdict, units);
  }

  /// Nothing in the rest of the pass is made of the gradient of a parameter, and what came to its module shows behind
  /// it.
  bool TravelsOn(size_t i, const NameParts& op) const {
    return op.direction != OpDirection::kParameterGrad || (!in_.plan.implementations && !EnteredAround(in_, i));
  }

  /// Of two implementations nothing is bit-equal: what stands out does so from what added up before it.
  float StandsOut() const {
    return in_.plan.implementations || Resplit() ? std::max(louder_, louder_ * loudest_) : stands_out_;
  }

  /// Halves of two layouts: what was split is summed in another order everywhere, and rounded at each step.
  bool Resplit() const {
    return in_.pair.options.resplit && coarsest_ > in_.pair.options.thresholds->tolerance_float32;
  }
  /// What a norm over many elements may differ by.
  float NormRoom(const OpDistance& d) const {
    return std::max(louder_ * norm_drift_, kNormRoom * std::max(coarsest_, d.tolerance));
  }
  bool NormsAgree(size_t i) const {
    const OpDistance& d = in_.distances[i];
    return Resplit() && d.norm_output >= 0 && NormOf(ops_.NameAt(i), d) <= NormRoom(d) && d.norm_input <= NormRoom(d);
  }

  /// Both runs round before this op, or its inputs differ.
  RulerVerdict VisitRounded(size_t i, const OpDistance& d) {
    const NameParts name = ParseOpName(ops_.NameAt(i));
    // What was rounded before does not reach what is made of numbers.
    const bool own = !anything_ && rewrites_.InParting(name.full, inexact_);
    const float input = own ? d.rounded : Scaled(i, d.rounded);
    // An op enlarges the relative error of its inputs by its condition; by rounding an index or a mask may flip.
    const bool flips = d.choices && (flipped_ || (inexact_ && d.input_error > 0));
    float output = flips || name.direction == OpDirection::kParameterGrad ? 0 : Scaled(i, d.conditioned);
    flipped_ = flipped_ || flips;
    const float calibrated = 2 * out_.contexts[i].calibrated;
    if (calibrated > 0 && d.output_error <= calibrated) output = std::min(output, 1.0f);
    if (!anything_ || from_outside_) {
      if (!anything_ && d.shapes && !flipped_) {
        split_ = d.split;
        const RulerVerdict verdict = Blame(Kind::kShape, i, RulerVerdict::kNone, d.input);
        return IsSettingBehindSplit(name, d) ? BlameSetting(i, d) : verdict;
      }
      if (!anything_ && d.shapes) return Added(i, d);
      if (!anything_ && d.argument) {
        if (!d.has_output || d.expected > 1 || Differs(Scaled(i, d.output)))
          return Blame(Kind::kArgument, i, ArgumentVerdict(), d.expected);
        if (!IsModuleName(name.full) && !rewrites_.Knows(name.full, false)) idle_.Note(ops_, i);
        return RulerVerdict::kRoundOff;
      }
      if (!anything_ && d.chosen && !flipped_) return Blame(Kind::kInput, i, OnEntry(d, kInfinity), kInfinity);
      const float bar = Resplit() && d.parameter ? louder_ : std::max(StandsOut(), louder_ * loudest_);
      if (!anything_ && input > (inexact_ && !own ? bar : 1)) return Blame(Kind::kInput, i, OnEntry(d, input), input);
      const float limit = from_outside_ ? stands_out_later_ : inexact_ ? StandsOut() : 1;
      // Of its inputs: a fill hides what rounding made of the rest, which is no more than the drift so far.
      const bool unseen = d.blind || (d.filled && inexact_ && output <= sure_of_bug_ * std::max(1.0f, loudest_));
      const bool given = !anything_ || !(d.argument || d.chosen);  // else that explains another result
      const bool jumps = output > limit && given && !Differs(input) && !unseen && output >= stands_out_ * input;
      // A module passes on what is in it, but no more than that.
      const bool passes_on = containers_.Contains(name) && (from_outside_ || Scaled(i, d.output) <= louder_ * loudest_);
      // What its statistics do not show may be other elements at the same places: they came in here.
      const bool hidden = in_.pair.options.mode == CompareMode::kChecksum && !inexact_ && d.input_error > 0;
      if (jumps && hidden && !anything_) return Blame(Kind::kInput, i, RulerVerdict::kSuspicious, output);
      if (jumps && out_.first.kind == Kind::kNone && !passes_on && ForwardAgrees(name)) {
        const bool bug = !from_outside_ && !d.mask && output > sure_of_bug_ && d.output_error > 0.5f && d.worst > 1;
        return BlameOutput(i, bug ? RulerVerdict::kBug : RulerVerdict::kSuspicious, output);
      }
      if (!anything_ && Resplit() && !flips && name.direction != OpDirection::kParameterGrad) {
        const float room = NormRoom(d);
        if (d.norm_input > room) return Blame(Kind::kInput, i, RulerVerdict::kSuspicious, d.norm_input / room);
        const float norm = NormOf(ops_.NameAt(i), d);
        if (norm > std::max(room, louder_ * d.norm_input) && ForwardAgrees(name) && !containers_.Contains(name))
          return BlameOutput(i, RulerVerdict::kSuspicious, norm / room);
      }
      const bool leads = !anything_ && !containers_.Contains(name) && !flips && output > 0;
      if (leads && inexact_ && JumpsFromDrift(d, drift_) && ForwardAgrees(name))
        return BlameOutput(i, RulerVerdict::kSuspicious, output);
    }
    if (split_ > 0 && anything_ && IsSettingBehindSplit(name, d)) return BlameSetting(i, d);
    // Two implementations round at other places inside of each module, which only shows behind it.
    const float slack = anything_ ? 1 : in_.plan.implementations ? louder_ : Resplit() ? StandsOut() : 1;
    const bool rounds = (input <= slack && output <= slack) || (!anything_ && NormsAgree(i));
    if (rounds && !d.argument && !d.shapes && !d.chosen) {
      const bool counts = std::isfinite(d.output) && TravelsOn(i, name);  // an index that rounding turned does not
      if (!anything_ && counts) loudest_ = std::max(loudest_, Scaled(i, d.output));
      if (!anything_) norm_drift_ = std::max(norm_drift_, d.norm_output);
      return RulerVerdict::kRoundOff;
    }
    return Added(i, d);
  }

  /// More than round-off, but nothing that stands out from what was before.
  RulerVerdict Added(size_t i, const OpDistance& d) {
    grows_ = std::min(grows_, i);
    const bool counts = std::isfinite(d.output) && TravelsOn(i, ParseOpName(ops_.NameAt(i)));
    if (!anything_ && counts) loudest_ = std::max(loudest_, Scaled(i, d.output));
    return Inherit(i);
  }

  RulerVerdict Inherit(size_t i) {
    out_.contexts[i].inherits = true;
    return RulerVerdict::kInherited;
  }

  RulerVerdict ArgumentVerdict() const { return inexact_ ? RulerVerdict::kSuspicious : RulerVerdict::kBug; }

  RulerVerdict OnEntry(const OpDistance& d, float input) {
    // The same values in another order, and the same loss and gradients: samples that stand in other places. Without
    // the gradients it may be units, or a fault of a model that has learned nothing yet.
    if (d.reordered && !anything_ && rewrites_.LossAgrees())
      return rewrites_.StepAgrees() ? RulerVerdict::kNone : RulerVerdict::kSuspicious;
    if (!d.values || OnlyChecksumsDiffer(in_, d, d.input_error)) return RulerVerdict::kSuspicious;
    return input > sure_of_bug_ && (!inexact_ || d.input_error > 0.5f) ? RulerVerdict::kBug : RulerVerdict::kSuspicious;
  }

  FirstDifference Found(Kind kind, size_t i, RulerVerdict verdict, float units) const {
    FirstDifference out;
    out.kind = kind;
    out.op = i;
    out.golden_op = in_.plan.golden_of[i];
    out.verdict = verdict;
    out.units = units;
    return out;
  }

  /// The first difference is at op `i`; what made it may be an op in front of it that only one run has.
  RulerVerdict Blame(Kind kind, size_t i, RulerVerdict verdict, float units) {
    const bool later = anything_;  // behind a difference from outside
    if (!later && unwritten_.Matters() && i != unwritten_.first()) {
      BlameUnwritten();
      return Inherit(i);
    }
    const bool call = kind == Kind::kOp && IsCommunication(ops_.NameAt(i));
    FirstDifference found = Found(call ? Kind::kCommunication : kind, i, verdict, units);
    const OpDistance& d = in_.distances[i];
    found.hidden = kind == Kind::kInput && d.masked && d.input <= 1;
    found.state = kind == Kind::kInput && IsState(ops_, in_.target_tree, i);
    if (d.has_input) found.input_error = d.input_error;
    if (d.has_output) found.output_error = d.output_error;
    anything_ = true;
    if (!later) answer_at_ = i;
    if (!later && kind != Kind::kDraw) {
      const bool unproven = inexact_ && kind == Kind::kOp && verdict != RulerVerdict::kBug;
      const bool from_outside = (kind == Kind::kInput && !d.parameter) || kind == Kind::kShape;
      const Lone* own = from_outside || unproven ? lone_.FirstOwnModule() : nullptr;
      if (!own && kind == Kind::kShape) own = lone_.FirstWithoutEffect();
      if (own && lone_.IsReplaced(*own)) own = nullptr;
      const std::optional<Lone> forward = kind == Kind::kOp && !in_.plan.cross ? lone_.ForwardOf(i) : std::nullopt;
      const Lone* near = lone_.Before(kind, i);
      if (!near && kind == Kind::kInput && !in_.plan.cross) near = lone_.Exchange(i);
      if (!near && kind == Kind::kOp && !in_.plan.cross) near = forward ? &*forward : lone_.ExchangeOfGradient(i);
      if (own && (!near || own->before < near->before)) {
        lone_.Set(*own, &found);
        if (kind == Kind::kShape) found.verdict = verdict = RulerVerdict::kSuspicious;
      } else if (near) {
        lone_.Set(*near, &found);
      } else if (!idle_.empty() && kind != Kind::kInput && inexact_ && i - idle_.last <= kFew) {
        idle_.SetOn(in_, &found);
      }
    }
    if (const auto given = later ? std::nullopt : GivenOnOneSide(in_, found, answer_at_)) {
      found = Found(Kind::kArgument, *given, ArgumentVerdict(), units);
      verdict = RulerVerdict::kInherited;
    }
    from_outside_ = found.kind == Kind::kDraw || (kind == Kind::kInput && found.kind == Kind::kInput);
    (from_outside_ ? out_.source : out_.first) = std::move(found);
    return verdict;
  }

  /// The run computes with memory that nobody wrote.
  void BlameUnwritten() {
    const size_t i = unwritten_.first();
    out_.verdicts[i] = Blame(Kind::kOp, i, RulerVerdict::kSuspicious, in_.distances[i].output);
  }

  /// Runs that are split differently cannot be compared by their values; their settings can, unless a number only
  /// follows the split, or all comes to the same in the end.
  bool IsSettingBehindSplit(const NameParts& name, const OpDistance& d) {
    // Whether a mask is given decides on other arguments of the call.
    if (out_.first.kind != Kind::kShape || !d.setting || d.one_sided || name.direction != OpDirection::kForward)
      return false;
    return !FollowsSplit(d.setting_ratio, split_) && !rewrites_.LossAgrees();
  }

  RulerVerdict BlameSetting(size_t i, const OpDistance& d) {
    out_.first = Found(Kind::kArgument, i, RulerVerdict::kSuspicious, d.input);
    // What is of other shapes in front of it inherits nothing: it cannot be compared.
    for (size_t k = answer_at_; k < i; ++k) {
      if (out_.verdicts[k] == RulerVerdict::kInherited) out_.verdicts[k] = RulerVerdict::kNone;
    }
    answer_at_ = i;
    return RulerVerdict::kSuspicious;
  }

  void FinishWith(const Lone& lone) {
    out_.first.op = std::min(lone.before, ops_.size() - 1);
    lone_.Set(lone, &out_.first);
    out_.first.verdict = RulerVerdict::kSuspicious;
    answer_at_ = lone.before;
  }

  void Finish() {
    if (out_.source.kind == Kind::kDraw && out_.first.kind == Kind::kNone && IsComplete(in_)) {
      if (const Lone* own = lone_.FirstBehindDraw(out_.source.op)) FinishWith(*own);
      return;
    }
    if (anything_ || !IsComplete(in_)) return;
    if (unwritten_.Matters()) return BlameUnwritten();
    if (const Lone* own = lone_.FirstOwnModule()) return FinishWith(*own);
    if (!idle_.empty()) {
      idle_.SetOn(in_, &out_.first);
      out_.first.verdict = RulerVerdict::kSuspicious;
      answer_at_ = idle_.first;
      return;
    }
    // Nothing behind it was recorded: the op alone is the difference. Training and inference, and two frameworks, are
    // built of other ops.
    for (const Lone& lone : lone_.all()) {
      // Where values behind it agree, the runs only compute them by other ops.
      const std::string_view name = (lone.golden ? *in_.pair.golden : *in_.pair.target).ops().NameAt(lone.op);
      if (lone.moves || in_.plan.matched == 0 || in_.plan.fused || in_.plan.cross) continue;
      if (lone.before < last_agreeing_ && (!IsCommunication(name) || lone_.IsInLoneCall(lone))) continue;
      return FinishWith(lone);
    }
    if (const Lone* own = grows_ == SIZE_MAX ? lone_.FirstWithoutEffect() : nullptr) return FinishWith(*own);
    if (grows_ == SIZE_MAX) return;
    out_.source = Found(Kind::kGrows, answer_at_ = grows_, RulerVerdict::kInherited, 0);
    out_.source.coarse = coarsest_ > in_.pair.options.thresholds->tolerance_float32 || rewrites_.StepAgrees() ||
                         rewrites_.GradientsOfParametersAgree();
  }

  const WalkInput& in_;
  const OpList& ops_;
  Containers containers_;
  Rewrites rewrites_;
  WalkResult out_;
  LoneOps lone_;
  UnwrittenFlow unwritten_;
  Draws draws_;
  float coarsest_ = 0;
  float norm_drift_ = 0;  // largest error of a norm over many elements that rounding explains
  float drift_ = 0;       // largest error so far of anything
  float cancelled_ = 0;   // largest magnitude of a gradient that is zero but for rounding
  float split_ = 0;       // of the shapes at which the runs part
  float loudest_ = 0;     // largest difference so far that only added up
  IdleArguments idle_;
  size_t rounded_zero_ = SIZE_MAX - 1;  // the last op of such values
  size_t last_agreeing_ = 0;            // behind the last op whose values are there and agree
  bool inexact_ = false;                // some value before is not bit-equal
  bool flipped_ = false;                // rounding turned an index or a mask
  bool anything_ = false;               // some difference before is larger than round-off
  bool from_outside_ = false;           // and no recorded op made it
  const float stands_out_ = static_cast<float>(in_.pair.options.thresholds->stands_out);
  const float stands_out_later_ = static_cast<float>(in_.pair.options.thresholds->stands_out_later);
  const float louder_ = static_cast<float>(in_.pair.options.thresholds->louder);
  const float sure_of_bug_ = static_cast<float>(in_.pair.options.thresholds->bug);
  size_t grows_ = SIZE_MAX;
  size_t answer_at_;
};

}  // namespace

StatusOr<WalkResult> WalkOps(const WalkInput& in) { return Walk(in).Run(); }

}  // namespace msprobe
