#include "compare/first_difference/difference_walk.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/page_trim.h"
#include "base/text.h"
#include "compare/first_difference/rewrites.h"
#include "ops/op_name.h"
#include "ops/op_traits.h"

namespace msprobe {
namespace {

using Kind = FirstDifference::Kind;

constexpr float kCoarsestTravels = 1.6e-2f;  // tolerance of bfloat16; that of float8 would hide too much
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kSameStatistics = 0x1p-22f;  // equal statistics leave so much room for what is in them
constexpr size_t kFew = 16;                  // ops behind an argument whose change shows only amid rounding
constexpr size_t kNear = 2;                  // matched ops that may stand between a lone op and what it changes

bool Differs(float distance) { return distance > 1; }

/// An op that one run has more, at its place among the target's ops.
struct Lone {
  bool golden = false;
  uint32_t op = 0;
  size_t before = 0;  // target ops in front of it
  bool moves = false;
  bool known = false;  // as a rewrite, from a module that agrees
  std::string_view parent;
};

class Walk {
 public:
  explicit Walk(const WalkInput& in)
      : in_(in),
        ops_(in.pair.target->ops()),
        containers_(in.target_tree),
        rewrites_(in.pair, in.plan, in.distances, in.target_tree, in.golden_tree, in.everywhere_other_dtype),
        answer_at_(ops_.size()) {
    out_.verdicts.assign(ops_.size(), RulerVerdict::kNone);
    out_.contexts.resize(ops_.size());
  }

  WalkResult Run() {
    size_t golden_only = 0;
    for (size_t i = 0; i < ops_.size(); ++i) {
      if (i % kStepsBetweenTrims == 0) TrimMaps();
      const uint32_t g = in_.plan.golden_of[i];
      for (; g != kNoOp && golden_only < in_.plan.golden_only.size() && in_.plan.golden_only[golden_only] < g;
           ++golden_only)
        AddLone(true, in_.plan.golden_only[golden_only], i);
      if (g == kNoOp) {
        AddLone(false, static_cast<uint32_t>(i), i);
      } else if (in_.distances[i].matched) {
        Visit(i);
      }
    }
    for (; golden_only < in_.plan.golden_only.size(); ++golden_only)
      AddLone(true, in_.plan.golden_only[golden_only], ops_.size());
    Finish();
    for (size_t i = 0; i < ops_.size(); ++i) out_.contexts[i].verdict = out_.verdicts[i];
    out_.answer_at = answer_at_;
    return std::move(out_);
  }

 private:
  void AddLone(bool golden, uint32_t op, size_t before) {
    Lone lone;
    lone.golden = golden;
    lone.op = op;
    lone.before = before;
    const std::string_view name = (golden ? *in_.pair.golden : *in_.pair.target).ops().NameAt(op);
    lone.moves = OnlyMovesOrCasts(name);
    lone.parent = (golden ? in_.golden_tree : in_.target_tree).ParentOf(name);
    if (rewrites_.Cover(name, golden, before)) return rewrites_.Learn(name, golden);
    lone.known = rewrites_.Knows(name, golden);
    lone_.push_back(lone);
  }

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

  void Visit(size_t i) {
    const OpDistance& d = in_.distances[i];
    coarsest_ = std::max(coarsest_, std::min(d.tolerance, kCoarsestTravels));
    RulerContext& context = out_.contexts[i];
    context.inherits = anything_;
    context.travelled = inexact_ ? coarsest_ : 0;
    if (in_.calibrated) context.calibrated = (*in_.calibrated)[in_.plan.golden_of[i]];
    if (!anything_ && d.has_output && !Differs(Scaled(i, d.conditioned))) last_agreeing_ = i + 1;
    const bool equal_inputs = d.rounded == 0 && d.input_error == 0 && !d.chosen && !d.argument && !d.shapes;
    if (equal_inputs && d.output == 0 && d.output_error == 0) {
      out_.verdicts[i] = d.has_input || d.has_output ? RulerVerdict::kBitEqual : RulerVerdict::kNone;
      return;
    }
    if (d.dtypes && !inexact_ && !anything_ && !in_.everywhere_other_dtype) {
      out_.verdicts[i] = Blame(Kind::kDType, i, RulerVerdict::kSuspicious, d.output);
      inexact_ = true;
      containers_.AddAncestorsOf(ParseOpName(ops_.NameAt(i)));
      return;
    }
    if (!anything_ && !d.parameter && IsRewritten(i, d)) {
      out_.verdicts[i] = VisitRewritten(i, d);
      return;
    }
    const bool apart = Differs(Scaled(i, d.input)) || Differs(Scaled(i, d.output));
    if (apart && inexact_ && !anything_ && !d.argument && !d.shapes && IsOfRoundedZero(i)) {
      out_.verdicts[i] = RulerVerdict::kRoundOff;
      return;
    }
    out_.verdicts[i] = equal_inputs && !inexact_ ? VisitExact(i, d) : VisitRounded(i, d);
    const bool idle = d.argument && i == idle_argument_;
    if (!idle && (Differs(Scaled(i, d.input)) || Differs(Scaled(i, d.output)) || d.shapes))
      containers_.AddAncestorsOf(ParseOpName(ops_.NameAt(i)));
    inexact_ = inexact_ || d.chosen || d.input_error > 0 || d.output_error > 0 || d.output > 0;
  }

  bool IsRewritten(size_t i, const OpDistance& d) {
    const std::string_view name = ops_.NameAt(i);
    // The same op of the same tensors, called otherwise: a setting, not another way.
    const bool same_call = d.has_input && d.rounded <= 1 && !d.chosen && !d.shapes;
    if (d.argument && same_call && !OnlyMovesOrCasts(name)) return false;
    // Modules are paired by their names: one that gives something else for the same input is no other module.
    if (IsModuleName(name) && same_call) return false;
    if (rewrites_.Cover(name, false, i)) return true;
    return inexact_ && d.has_output && d.values && !Differs(d.output) && rewrites_.Knows(name, false);
  }

  /// Inside a module that agrees: what differs here is computed another way, and the result is the same.
  RulerVerdict VisitRewritten(size_t i, const OpDistance& d) {
    inexact_ = true;
    const bool apart =
        Differs(Scaled(i, d.input)) || Differs(Scaled(i, d.output)) || d.argument || d.shapes || d.chosen;
    if (apart) rewrites_.Learn(ops_.NameAt(i), false);
    return apart ? RulerVerdict::kRewritten : RulerVerdict::kRoundOff;
  }

  /// Gradients that are zero but for rounding, and the step that an optimizer makes of such a one.
  bool IsOfRoundedZero(size_t i) {
    const bool step = rounded_zero_ + 1 == i && !IsModuleName(in_.target_tree.ParentOf(ops_.NameAt(i)));
    if (!rewrites_.IsRoundedZero(i)) return step;
    rounded_zero_ = i;
    return true;
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
    const bool bug = d.values && d.worst > 1 && !OnlyChecksumsDiffer(d);
    const RulerVerdict verdict = bug ? RulerVerdict::kBug : RulerVerdict::kSuspicious;
    return Blame(Kind::kOp, i, verdict, d.expected);
  }

  /// Their statistics agree to the round-off of the dtype.
  bool OnlyChecksumsDiffer(const OpDistance& d) const {
    return in_.pair.options.mode == CompareMode::kChecksum && d.output_error <= d.tolerance;
  }

  /// Both runs round before this op, or its inputs differ.
  RulerVerdict VisitRounded(size_t i, const OpDistance& d) {
    const NameParts name = ParseOpName(ops_.NameAt(i));
    const float input = Scaled(i, d.rounded);
    // An op enlarges the relative error of its inputs by its condition; by rounding an index or a mask may flip.
    const bool flips = d.choices && (flipped_ || (inexact_ && d.input_error > 0));
    float output = flips || name.direction == OpDirection::kParameterGrad ? 0 : Scaled(i, d.conditioned);
    flipped_ = flipped_ || flips;
    const float calibrated = 2 * out_.contexts[i].calibrated;
    if (calibrated > 0 && d.output_error <= calibrated) output = std::min(output, 1.0f);
    if (!anything_ || from_outside_) {
      if (!anything_ && d.shapes && !flipped_) return Blame(Kind::kShape, i, RulerVerdict::kNone, d.input);
      if (!anything_ && d.shapes) return Added(i, d);
      if (!anything_ && d.argument) {
        if (!d.has_output || d.expected > 1 || Differs(Scaled(i, d.output)))
          return Blame(Kind::kArgument, i, ArgumentVerdict(), d.expected);
        if (!IsModuleName(name.full)) idle_argument_ = i;
        return RulerVerdict::kRoundOff;
      }
      if (!anything_ && d.chosen && !flipped_) return Blame(Kind::kInput, i, OnEntry(d, kInfinity), kInfinity);
      if (!anything_ && input > (inexact_ ? std::max(stands_out_, louder_ * loudest_) : 1))
        return Blame(Kind::kInput, i, OnEntry(d, input), input);
      const float limit = from_outside_ ? stands_out_later_ : inexact_ ? stands_out_ : 1;
      const bool jumps = output > limit && !Differs(input) && !d.blind && output >= stands_out_ * input;
      // A module passes on what is in it, but no more than that.
      const bool passes_on = containers_.Contains(name) && (from_outside_ || Scaled(i, d.output) <= louder_ * loudest_);
      // What its statistics do not show may be other elements at the same places: they came in here.
      const bool hidden = in_.pair.options.mode == CompareMode::kChecksum && !inexact_ && d.input_error > 0;
      if (jumps && hidden && !anything_) return Blame(Kind::kInput, i, RulerVerdict::kSuspicious, output);
      if (jumps && out_.first.kind == Kind::kNone && !passes_on && ForwardAgrees(name)) {
        const bool bug = !from_outside_ && output > sure_of_bug_ && d.output_error > 0.5f && d.worst > 1;
        return Blame(Kind::kOp, i, bug ? RulerVerdict::kBug : RulerVerdict::kSuspicious, output);
      }
    }
    if (!Differs(input) && !Differs(output) && !d.argument && !d.shapes && !d.chosen) {
      if (!anything_) loudest_ = std::max(loudest_, Scaled(i, d.output));
      return RulerVerdict::kRoundOff;
    }
    return Added(i, d);
  }

  /// More than round-off, but nothing that stands out from what was before.
  RulerVerdict Added(size_t i, const OpDistance& d) {
    grows_ = std::min(grows_, i);
    if (!anything_ && std::isfinite(d.output)) loudest_ = std::max(loudest_, Scaled(i, d.output));
    return Inherit(i);
  }

  RulerVerdict Inherit(size_t i) {
    out_.contexts[i].inherits = true;
    return RulerVerdict::kInherited;
  }

  RulerVerdict ArgumentVerdict() const { return inexact_ ? RulerVerdict::kSuspicious : RulerVerdict::kBug; }

  RulerVerdict OnEntry(const OpDistance& d, float input) const {
    if (!d.values) return RulerVerdict::kSuspicious;
    return input > sure_of_bug_ && (!inexact_ || d.input_error > 0.5f) ? RulerVerdict::kBug : RulerVerdict::kSuspicious;
  }

  /// The first difference is at op `i`; what made it may be an op in front of it that only one run has.
  RulerVerdict Blame(Kind kind, size_t i, RulerVerdict verdict, float units) {
    const bool later = anything_;  // behind a difference from outside
    FirstDifference found;
    found.kind = kind == Kind::kOp && StartsWith(ops_.NameAt(i), "Distributed.") ? Kind::kCommunication : kind;
    found.op = i;
    found.golden_op = in_.plan.golden_of[i];
    found.verdict = verdict;
    found.units = units;
    const OpDistance& d = in_.distances[i];
    if (d.has_input) found.input_error = d.input_error;
    if (d.has_output) found.output_error = d.output_error;
    anything_ = true;
    if (!later) {
      answer_at_ = i;
      if (const Lone* lone = LoneBefore(kind, i)) {
        SetLone(*lone, &found);
      } else if (idle_argument_ != SIZE_MAX && (kind == Kind::kInput || (inexact_ && i - idle_argument_ <= kFew))) {
        SetIdleArgument(&found);
      }
    }
    if (kind == Kind::kInput && found.kind == Kind::kInput) {
      from_outside_ = true;
      out_.source = std::move(found);
    } else {
      out_.first = std::move(found);
      from_outside_ = false;
    }
    return verdict;
  }

  /// An argument whose change did not show in its own op, as that of an op that may write to its input.
  void SetIdleArgument(FirstDifference* found) const {
    found->kind = Kind::kArgument;
    found->op = idle_argument_;
    found->golden_op = in_.plan.golden_of[idle_argument_];
  }

  /// The outermost module around `op` that one run has more, or the op itself.
  uint32_t Outermost(const Lone& lone) const {
    const DumpFile& dump = lone.golden ? *in_.pair.golden : *in_.pair.target;
    const ModuleTree& tree = lone.golden ? in_.golden_tree : in_.target_tree;
    const auto is_lone = [&](size_t op) {
      return lone.golden ? std::binary_search(in_.plan.golden_only.begin(), in_.plan.golden_only.end(), op)
                         : in_.plan.golden_of[op] == kNoOp;
    };
    uint32_t out = lone.op;
    tree.ForEachAround(dump.ops().NameAt(lone.op), [&](std::string_view name) {
      const auto at = dump.FindOp(name);
      if (!at || !is_lone(*at)) return false;
      out = static_cast<uint32_t>(*at);
      return true;
    });
    return out;
  }

  void SetLone(const Lone& lone, FirstDifference* found) const {
    const uint32_t op = Outermost(lone);
    found->kind = lone.golden ? Kind::kMissingOp : Kind::kExtraOp;
    if (lone.golden) {
      found->golden_op = op;
    } else {
      found->op = op;
      found->golden_op = kNoOp;
    }
  }

  /// The op that only one run has and that explains the difference at `i`: it stands right in front of it, or in the
  /// module that differs.
  const Lone* LoneBefore(Kind kind, size_t i) const {
    const bool module = IsModuleName(ops_.NameAt(i));
    if (kind == Kind::kArgument || (kind == Kind::kOp && !module)) return nullptr;
    const std::string_view parent = module ? std::string_view() : in_.target_tree.ParentOf(ops_.NameAt(i));
    for (size_t k = lone_.size(); k-- > 0;) {
      const Lone& lone = lone_[k];
      const bool inside = module && !lone.parent.empty() && lone.parent == ops_.NameAt(i);
      const bool beside = !parent.empty() && lone.parent == parent;
      const bool near = kind != Kind::kOp && i - lone.before <= kNear;
      if (lone.known) continue;
      if (inside || beside || near) return FirstOfGroup(k);
    }
    return nullptr;
  }

  /// The first of the lone ops that stand together with lone_[k], of those that change values if there are any.
  const Lone* FirstOfGroup(size_t k) const {
    const auto together = [](const Lone& a, const Lone& b) { return b.before - a.before <= 1 + kNear; };
    size_t first = k;
    while (first > 0 && together(lone_[first - 1], lone_[first])) --first;
    for (size_t j = first; j <= k; ++j) {
      if (!lone_[j].moves && !lone_[j].known) return &lone_[j];
    }
    return &lone_[first];
  }

  /// False for the first part of a comparison that still runs.
  bool IsComplete() const {
    for (size_t i = ops_.size(); i-- > 0;) {
      if (in_.plan.golden_of[i] != kNoOp && !HasArbitraryValues(ops_.NameAt(i))) return in_.distances[i].matched;
    }
    return true;
  }

  void Finish() {
    if (anything_ || !IsComplete()) return;
    if (idle_argument_ != SIZE_MAX) {
      SetIdleArgument(&out_.first);
      out_.first.verdict = RulerVerdict::kSuspicious;
      answer_at_ = idle_argument_;
      return;
    }
    // Nothing behind it was recorded: the op alone is the difference. Training and inference are built of other
    // modules.
    for (const Lone& lone : lone_) {
      // Where values behind it agree, the runs only compute them by other ops.
      const std::string_view name = (lone.golden ? *in_.pair.golden : *in_.pair.target).ops().NameAt(lone.op);
      if (lone.moves || in_.plan.matched == 0 || in_.plan.fused) continue;
      if (lone.before < last_agreeing_ && !StartsWith(name, "Distributed.")) continue;
      FirstDifference found;
      found.op = std::min(lone.before, ops_.size() - 1);
      SetLone(lone, &found);
      found.verdict = RulerVerdict::kSuspicious;
      out_.first = std::move(found);
      answer_at_ = lone.before;
      return;
    }
    if (grows_ == SIZE_MAX) return;
    out_.source.kind = Kind::kGrows;
    out_.source.op = answer_at_ = grows_;
    out_.source.golden_op = in_.plan.golden_of[grows_];
    out_.source.verdict = RulerVerdict::kInherited;
  }

  const WalkInput& in_;
  const OpList& ops_;
  Containers containers_;
  Rewrites rewrites_;
  WalkResult out_;
  BigArray<Lone> lone_;
  float coarsest_ = 0;
  float loudest_ = 0;  // largest difference so far that only added up
  size_t idle_argument_ = SIZE_MAX;
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

WalkResult WalkOps(const WalkInput& in) { return Walk(in).Run(); }

}  // namespace msprobe
