#include "curves/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/message.h"
#include "curves/factor.h"

namespace msprobe {
namespace {

constexpr double kJump = 5;          // half-widths of the band that a jump exceeds
constexpr size_t kJumpPoints = 10;   // within so many points
constexpr double kSmall = 0.01;      // "less than 1 %" of the guide
constexpr double kJumpShare = 0.05;  // of the value: what no rounding of equal trainings does within kJumpPoints steps

struct RuleText {
  std::string_view id, rule;
};
constexpr RuleText kStep1{"step1_loss", "the loss of the first step is the forward pass alone: it must agree"};
constexpr RuleText kSameRate{"learning_rate", "the learning rate must be the same at each step"};
constexpr RuleText kWeightsFixed{"weights_not_updated", "with learning rate 0 each step is forward and backward alone"};
constexpr RuleText kBenchmark{"benchmark_error", "the error must be within that of the benchmark, run more than once"};
constexpr RuleText kZero{"zero_axis", "the error must fluctuate up and down along the zero axis"};
constexpr RuleText kDiffusion{"loss_diffusion", "a sudden growth begins with the data or an overflow at that step"};
constexpr RuleText kLate{"late_difference", "a late difference comes from the optimizer or from mixed precision"};
constexpr RuleText kFinite{"finite", "losses and norms of gradients must be finite"};
constexpr RuleText kFactor{"constant_factor", "a factor that stays is a sum that one side does not divide"};
constexpr RuleText kEvaluation{"evaluation_loss", "the loss of an evaluation must agree as that of the training does"};
constexpr RuleText kNorm{"global_norm", "the norm of the gradient is the backward pass: it must agree"};

CurveRule Make(const RuleText& rule, RuleVerdict verdict, Message text, std::optional<int64_t> step = {}) {
  return {rule.id, rule.rule, verdict, std::move(text), step};
}

const ComparedCurve* FindCurve(const std::vector<ComparedCurve>& curves, CurveKind kind) {
  for (const ComparedCurve& c : curves) {
    if (c.kind == kind && c.pair.size() > 0) return &c;
  }
  return nullptr;
}

bool HasBand(const ComparedCurve& c) { return c.band && !c.band->IsEmpty() && c.check.compared > 0; }

double Allowed(const ComparedCurve& c, size_t i) {
  const double width = c.band ? c.band->At(c.pair.steps[i]).value_or(0) : 0;
  return std::max(width, c.pair.units[i]);
}

size_t PlaceOf(const ComparedCurve& c, int64_t step) {
  return static_cast<size_t>(std::lower_bound(c.pair.steps.begin(), c.pair.steps.end(), step) - c.pair.steps.begin());
}

/// Mean of |b - a| / |a| over the last quarter.
double LateRelative(const ComparedCurve& c) {
  const size_t n = c.pair.size(), begin = n - std::max<size_t>(n / 4, 1);
  double sum = 0;
  for (size_t i = begin; i < n; ++i) {
    sum += std::fabs(c.pair.difference(i)) / std::max(std::fabs(c.pair.a[i]), c.pair.units[i]);
  }
  return sum / static_cast<double>(n - begin);
}

/// The first quarter fits better than the last by far: then it is the late part that differs, not the whole.
bool GrowsLate(const ComparedCurve& c) {
  const size_t n = c.pair.size(), quarter = n / 4;
  double early = 0, late = 0;
  for (size_t i = 0; i < quarter; ++i) {
    early += std::fabs(c.pair.difference(i));
    late += std::fabs(c.pair.difference(n - 1 - i));
  }
  return early < 0.5 * late;
}

/// Where it left the band in a jump, the step from which it is back: at a tenth of the jump nearly always, at half of
/// it always.
std::optional<int64_t> ComesBack(const ComparedCurve& c, size_t at) {
  constexpr size_t kFewestAfter = 10;
  double most = 0;
  const size_t n = c.pair.size();
  for (size_t i = at; i < std::min(n, at + kJumpPoints); ++i) most = std::max(most, std::fabs(c.pair.difference(i)));
  if (!std::isfinite(most)) return std::nullopt;
  size_t back = at;
  for (size_t i = at; i < n; ++i) {
    if (std::fabs(c.pair.difference(i)) > most / 2) back = i + 1;
  }
  if (back > at + kJumpPoints || back + kFewestAfter > n) return std::nullopt;
  size_t far = 0;
  for (size_t i = back; i < n; ++i) far += std::fabs(c.pair.difference(i)) > most / 10;
  return 10 * far <= n - back ? std::optional(c.pair.steps[back]) : std::nullopt;
}

/// Where it left the band, did it jump?
bool Jumps(const ComparedCurve& c, size_t at) {
  for (size_t i = at; i < std::min(c.pair.size(), at + kJumpPoints); ++i) {
    if (std::fabs(c.pair.difference(i)) > kJump * Allowed(c, i)) return true;
  }
  return false;
}

void JudgeRate(const std::vector<ComparedCurve>& curves, CurveJudgement* out) {
  const ComparedCurve* rate = FindCurve(curves, CurveKind::kLearningRate);
  if (!rate) return;
  bool fixed = true;
  size_t apart = 0;
  std::optional<size_t> first, beyond;
  for (size_t i = 0; i < rate->pair.size(); ++i) {
    fixed = fixed && rate->pair.a[i] == 0 && rate->pair.b[i] == 0;
    const double a = rate->pair.a[i], b = rate->pair.b[i];
    // One run may print fewer digits: half a unit of the coarser print is rounding.
    if (std::fabs(b - a) <= std::max(1e-6 * std::fabs(a), 0.501 * rate->pair.units[i])) continue;
    ++apart;
    if (!first) first = i;
    if (!beyond && std::fabs(b - a) > 1.01 * rate->pair.units[i]) beyond = i;
  }
  // Where rates are printed with one digit, a doubled one differs by one unit of it, but at each step; rounding does
  // not.
  const bool steady = apart >= 3 && 2 * apart > rate->pair.size();
  if (beyond || steady) {
    const size_t at = beyond && !steady ? *beyond : *first;
    out->rules.push_back(Make(
        kSameRate, RuleVerdict::kFail,
        Msg("differs from step {} on: A {:.6g}, B {:.6g}", rate->pair.steps[at], rate->pair.a[at], rate->pair.b[at]),
        rate->pair.steps[at]));
    return;
  }
  out->rules.push_back(Make(kSameRate, RuleVerdict::kPass, Msg("equal at {} steps", rate->pair.size())));
  if (fixed) {
    out->rules.push_back(
        Make(kWeightsFixed, RuleVerdict::kPass, Msg("the learning rate is 0: the weights stay as they are")));
  }
}

void JudgeNorm(const std::vector<ComparedCurve>& curves, CurveJudgement* out) {
  const ComparedCurve* norm = FindCurve(curves, CurveKind::kGradNorm);
  if (!norm) return;
  const CurveDifference& d = norm->difference;
  const Message relative = Msg("mean relative difference {:.3g}", d.mean_relative);
  if (d.first_not_finite) {
    out->rules.push_back(Make(kNorm, RuleVerdict::kFail,
                              Msg("one side is not finite from step {} on", *d.first_not_finite), d.first_not_finite));
    return;
  }
  if (!HasBand(*norm)) {
    const RuleVerdict verdict = !d.first_apart                 ? RuleVerdict::kPass
                                : d.mean_relative > kJumpShare ? RuleVerdict::kFail
                                                               : RuleVerdict::kUnknown;
    out->rules.push_back(Make(kNorm, verdict, relative, d.first_apart));
    return;
  }
  if (!norm->check.first_outside) {
    out->rules.push_back(Make(kNorm, RuleVerdict::kPass, Msg("within its golden band, {}", relative)));
    return;
  }
  out->rules.push_back(Make(kNorm, RuleVerdict::kFail,
                            Msg("leaves its golden band at step {}, {}", *norm->check.first_outside, relative),
                            norm->check.first_outside));
}

Message ZeroText(const CurveDifference& d) {
  const double percent = 100.0 * static_cast<double>(d.positive) / static_cast<double>(std::max<size_t>(d.count, 1));
  return Msg("{:.0f} % positive, t {:.2f} of {:.2f}, {:.0f} independent steps", percent, d.zero.t, d.zero.limit,
             d.zero.independent);
}

void JudgeInside(const ComparedCurve& c, CurveJudgement* out) {
  out->rules.push_back(Make(kBenchmark, RuleVerdict::kPass,
                            Msg("within the golden band at {} steps, at most {:.2f} of its half-width",
                                c.check.compared, c.check.worst_ratio)));
  const ZeroTest& zero = c.difference.zero;
  const Message found = ZeroText(c.difference);
  switch (zero.verdict) {
    case ZeroAxis::kEqual:
    case ZeroAxis::kRoundZero:
      out->verdict = CurveVerdict::kReasonable;
      out->rules.push_back(Make(kZero, RuleVerdict::kPass, found));
      break;
    case ZeroAxis::kOneSided:
      out->verdict = CurveVerdict::kOneSided;
      out->step = c.difference.first_apart;
      out->rules.push_back(Make(kZero, RuleVerdict::kFail, found));
      break;
    case ZeroAxis::kUndecided:
      out->verdict = CurveVerdict::kWithinBand;
      out->rules.push_back(
          Make(kZero, RuleVerdict::kUnknown,
               Msg("successive differences are alike: {:.0f} independent steps are too few", zero.independent)));
  }
}

void JudgeOutside(const ComparedCurve& c, CurveJudgement* out) {
  const int64_t step = *c.check.first_outside;
  const size_t at = PlaceOf(c, step);
  out->step = step;
  out->rules.push_back(Make(kBenchmark, RuleVerdict::kFail,
                            Msg("leaves the golden band at step {}: outside at {} of {} steps, at most {:.1f} "
                                "half-widths",
                                step, c.check.outside, c.check.compared, c.check.worst_ratio),
                            step));
  if (at == 0) {
    out->verdict = CurveVerdict::kFromFirstStep;
    return;
  }
  if (const auto back = ComesBack(c, at); back && Jumps(c, at)) {
    out->verdict = CurveVerdict::kOutsideBand;
    out->rules.push_back(Make(
        kDiffusion, RuleVerdict::kFail,
        Msg("jumps at step {} and comes back at step {}: the data of that step, or one update", step, *back), step));
    return;
  }
  if (Jumps(c, at) && at >= kJumpPoints) {
    out->verdict = CurveVerdict::kDiverges;
    out->rules.push_back(Make(kDiffusion, RuleVerdict::kFail, Msg("jumps at step {}", step)));
    return;
  }
  if (c.difference.zero.verdict == ZeroAxis::kOneSided) {
    out->rules.push_back(Make(kZero, RuleVerdict::kFail, ZeroText(c.difference)));
  }
  if (at < c.pair.size() / 4 || !GrowsLate(c)) {
    out->verdict = CurveVerdict::kOutsideBand;
    return;
  }
  out->verdict = CurveVerdict::kLateDifference;
  const double late = LateRelative(c);
  Message text = Msg("mean relative difference of the last quarter {:.3g}", late);
  if (late < kSmall) {
    text = Msg(
        "mean relative difference of the last quarter {:.3g}, below 1 %: decide by the evaluation of downstream tasks",
        late);
  }
  out->rules.push_back(Make(kLate, late < kSmall ? RuleVerdict::kWarn : RuleVerdict::kFail, std::move(text)));
}

void JudgeStep1(const ComparedCurve& c, CurveJudgement* out) {
  const double d = std::fabs(c.pair.difference(0));
  const auto text = Msg("A {:.6g}, B {:.6g} at step {}", c.pair.a[0], c.pair.b[0], c.pair.steps[0]);
  const bool banded = HasBand(c) && c.band->At(c.pair.steps[0]);
  RuleVerdict verdict = RuleVerdict::kUnknown;
  if (d <= c.pair.units[0]) {
    verdict = RuleVerdict::kPass;
  } else if (banded) {
    verdict = d <= Allowed(c, 0) ? RuleVerdict::kPass : RuleVerdict::kFail;
  }
  out->rules.push_back(Make(kStep1, verdict, text));
}

/// What was equal for many steps and is far away a few steps later did not drift there, whatever the band would be.
bool JumpsFromEqual(const ComparedCurve& c) {
  const size_t at = PlaceOf(c, *c.difference.first_apart);
  if (at < kJumpPoints) return false;
  for (size_t i = at; i < std::min(c.pair.size(), at + kJumpPoints); ++i) {
    const double apart = std::fabs(c.pair.difference(i));
    if (apart > kJump * c.pair.units[i] && apart > kJumpShare * std::fabs(c.pair.a[i])) return true;
  }
  return false;
}

void JudgeWithoutBand(const ComparedCurve& c, CurveJudgement* out) {
  out->step = c.difference.first_apart;
  if (JumpsFromEqual(c)) {
    out->verdict = CurveVerdict::kDiverges;
    const size_t before = PlaceOf(c, *out->step);
    const auto back = ComesBack(c, before);
    out->rules.push_back(Make(
        kDiffusion, RuleVerdict::kFail,
        back
            ? Msg("jumps at step {} and comes back at step {}: the data of that step, or one update", *out->step, *back)
            : Msg("equal at {} steps before, and far away at step {}", before, *out->step),
        out->step));
    return;
  }
  out->rules.push_back(
      Make(kBenchmark, RuleVerdict::kUnknown,
           c.band ? Msg("the runs of A are equal to the bit: turn deterministic computation off and repeat them")
                  : Msg("run A once more, without deterministic computation, and give it as a third file")));
}

void JudgeDecisive(const ComparedCurve& c, CurveJudgement* out) {
  const CurveDifference& d = c.difference;
  if (!d.first_apart) {
    out->verdict = CurveVerdict::kEqual;
  } else if (d.first_not_finite) {
    out->verdict = CurveVerdict::kDiverges;
    out->step = d.first_not_finite;
    out->rules.push_back(
        Make(kDiffusion, RuleVerdict::kFail, Msg("one side is not finite from step {} on", *d.first_not_finite)));
  } else if (!HasBand(c)) {
    JudgeWithoutBand(c, out);
  } else if (c.check.first_outside) {
    JudgeOutside(c, out);
  } else {
    JudgeInside(c, out);
  }
}

/// Of the loss and of the norm: a sum that is not divided shows as one factor at all steps.
void JudgeFactors(const std::vector<ComparedCurve>& curves, CurveJudgement* out) {
  constexpr double kLossScatter = 0.03, kNormScatter = 0.1;
  for (const auto& [kind, scatter] :
       {std::pair(CurveKind::kLoss, kLossScatter), {CurveKind::kGradNorm, kNormScatter}}) {
    const ComparedCurve* c = FindCurve(curves, kind);
    if (c && HasBand(*c) && !c->check.first_outside) continue;
    const auto factor = c ? FactorBetween(c->pair, scatter) : std::nullopt;
    if (!factor) continue;
    out->rules.push_back(Make(kFactor, RuleVerdict::kFail,
                              Msg("the {} of B is {:.4g} times that of A at nearly all of {} steps: summed over micro "
                                  "batches or ranks at one side, and divided at the other",
                                  KnownText(CurveKindText(kind)), *factor, c->pair.size()),
                              c->difference.first_apart));
  }
}

/// Equal weights give equal losses of an evaluation; of others these may be as far apart as runs of A.
void JudgeEvaluation(const std::vector<ComparedCurve>& curves, CurveJudgement* out) {
  constexpr double kSameWeights = 1e-3;  // relative: another order of sums
  const ComparedCurve* c = FindCurve(curves, CurveKind::kEvalLoss);
  if (!c) return;
  const ComparedCurve* loss = FindCurve(curves, CurveKind::kLoss);
  const CurveDifference& d = c->difference;
  const bool same_weights = loss && !loss->difference.first_apart && !d.first_not_finite;
  const double apart = same_weights ? kSameWeights : kJumpShare;
  const auto first = c->check.first_outside ? c->check.first_outside : d.first_apart;
  RuleVerdict verdict = RuleVerdict::kUnknown;
  if (!d.first_apart || (HasBand(*c) && !c->check.first_outside)) verdict = RuleVerdict::kPass;
  if (verdict != RuleVerdict::kPass && (HasBand(*c) || d.first_not_finite || d.mean_relative > apart)) {
    verdict = RuleVerdict::kFail;
  }
  const Message text =
      verdict == RuleVerdict::kPass
          ? Msg("agrees at {} evaluations", d.count)
          : Msg("{} evaluations, apart from step {} on: at most {:.4g}, mean relative difference {:.3g}", d.count,
                first.value_or(d.first_step), d.max_abs, d.mean_relative);
  out->rules.push_back(Make(kEvaluation, verdict, text, first));
}

/// The head says the first step at which any rule fails.
void LeadWithFirst(CurveJudgement* out) {
  if (IsFine(out->verdict)) return;
  for (const CurveRule& rule : out->rules) {
    const bool earlier = rule.verdict == RuleVerdict::kFail && rule.step && (!out->step || *rule.step < *out->step);
    if (earlier) out->step = rule.step;
  }
}

std::optional<int64_t> FirstOtherRate(const CurvePair& pair) {
  for (size_t i = 0; i < pair.size(); ++i) {
    if (std::fabs(pair.b[i] - pair.a[i]) > 1e-6 * std::fabs(pair.a[i])) return pair.steps[i];
  }
  return std::nullopt;
}

/// What the decisive curve does not show: the norm of the gradient, the learning rate, and NaN on both sides.
void JudgeOthers(const std::vector<ComparedCurve>& curves, const ComparedCurve& decides, CurveJudgement* out) {
  for (const ComparedCurve* c : {&decides, FindCurve(curves, CurveKind::kGradNorm)}) {
    if (!c || !c->difference.first_bad || c->difference.first_not_finite) continue;
    const CurveDifference& d = c->difference;
    out->rules.push_back(Make(kFinite, RuleVerdict::kFail,
                              Msg("the {} of both is not finite from step {} on, at {} steps",
                                  KnownText(CurveKindText(c->kind)), *d.first_bad, d.bad_a)));
    out->verdict = CurveVerdict::kNotFinite;
    out->step = d.first_bad;
    return;
  }
  const auto state = [&](const RuleText& rule) {
    const auto found =
        std::find_if(out->rules.begin(), out->rules.end(), [&](const CurveRule& r) { return r.id == rule.id; });
    return found == out->rules.end() ? RuleVerdict::kPass : found->verdict;
  };
  if (state(kSameRate) == RuleVerdict::kFail) {
    out->verdict = CurveVerdict::kRateDiffers;
    out->step = FirstOtherRate(FindCurve(curves, CurveKind::kLearningRate)->pair);
    return;
  }
  if (state(kEvaluation) != RuleVerdict::kPass) {
    const bool fails = state(kEvaluation) == RuleVerdict::kFail;
    out->verdict = fails ? CurveVerdict::kEvalDiffers : CurveVerdict::kNoBand;
    out->step = std::find_if(out->rules.begin(), out->rules.end(), [](const CurveRule& r) {
                  return r.id == kEvaluation.id;
                })->step;
    if (fails) return;
  }
  const ComparedCurve* norm = FindCurve(curves, CurveKind::kGradNorm);
  if (!norm || state(kNorm) == RuleVerdict::kPass) return;
  const CurveDifference& d = norm->difference;
  out->step = norm->check.first_outside ? norm->check.first_outside
              : d.first_not_finite      ? d.first_not_finite
                                        : d.first_apart;
  out->verdict = state(kNorm) == RuleVerdict::kFail ? CurveVerdict::kNormDiffers : CurveVerdict::kNoBand;
}

JudgementKind KindOf(CurveVerdict v) {
  switch (v) {
    case CurveVerdict::kEqual: return JudgementKind::kBitEqual;
    case CurveVerdict::kReasonable:
    case CurveVerdict::kWithinBand: return JudgementKind::kRoundOff;
    case CurveVerdict::kOneSided:
    case CurveVerdict::kLateDifference: return JudgementKind::kDrift;
    case CurveVerdict::kFromFirstStep:
    case CurveVerdict::kOutsideBand:
    case CurveVerdict::kNormDiffers:
    case CurveVerdict::kRateDiffers:
    case CurveVerdict::kEvalDiffers: return JudgementKind::kSuspicious;
    case CurveVerdict::kDiverges:
    case CurveVerdict::kNotFinite: return JudgementKind::kBug;
    case CurveVerdict::kNoBand: break;
  }
  return JudgementKind::kCannotSay;
}

JudgementKind KindOf(RuleVerdict v, CurveVerdict whole) {
  switch (v) {
    case RuleVerdict::kPass: return whole == CurveVerdict::kEqual ? JudgementKind::kBitEqual : JudgementKind::kRoundOff;
    case RuleVerdict::kWarn:
    case RuleVerdict::kFail: return JudgementKind::kSuspicious;
    case RuleVerdict::kUnknown: break;
  }
  return JudgementKind::kCannotSay;
}

}  // namespace

std::vector<Judgement> JudgementsOf(const CurveJudgement& judgement) {
  std::vector<Judgement> out(1);
  out[0].kind = KindOf(judgement.verdict);
  out[0].about = Msg("the curves of both runs");
  out[0].evidence.push_back(KnownText(CurveVerdictText(judgement.verdict)));
  for (const CurveRule& rule : judgement.rules) {
    Judgement one;
    one.kind = KindOf(rule.verdict, judgement.verdict);
    one.about = Message(std::string(rule.id));
    one.evidence.push_back(rule.text);
    one.basis = KnownText(rule.rule);
    one.asked = rule.verdict != RuleVerdict::kUnknown;  // then the verdict says what it means
    out.push_back(std::move(one));
  }
  return out;
}

std::string_view CurveVerdictName(CurveVerdict v) {
  constexpr std::array<std::string_view, 13> kNames{
      "equal",    "reasonable",   "within_band",  "one_sided",    "from_first_step", "outside_band", "late_difference",
      "diverges", "norm_differs", "rate_differs", "eval_differs", "not_finite",      "no_band"};
  return kNames[static_cast<size_t>(v)];
}

std::string_view CurveVerdictText(CurveVerdict v) {
  switch (v) {
    case CurveVerdict::kEqual: return "equal to the last digit";
    case CurveVerdict::kReasonable: return "reasonable: within the golden band, and round zero";
    case CurveVerdict::kWithinBand: return "within the golden band; too short to say whether round zero";
    case CurveVerdict::kOneSided: return "not reasonable: within the golden band, but on one side of zero";
    case CurveVerdict::kFromFirstStep: return "not reasonable: outside of the golden band from the first step on";
    case CurveVerdict::kOutsideBand: return "not reasonable: leaves the golden band";
    case CurveVerdict::kLateDifference: return "not reasonable: leaves the golden band late";
    case CurveVerdict::kDiverges: return "not reasonable: diverges";
    case CurveVerdict::kNormDiffers:
      return "not reasonable: the norms of the gradient differ, which the losses do not show";
    case CurveVerdict::kRateDiffers: return "not reasonable: the learning rates differ";
    case CurveVerdict::kEvalDiffers:
      return "not reasonable: the losses of evaluations differ, which those of the training do not show";
    case CurveVerdict::kNotFinite: return "not reasonable: both are NaN or infinite";
    case CurveVerdict::kNoBand: return "not known: without a golden band no difference can be called reasonable";
  }
  return "";
}

std::string_view RuleVerdictName(RuleVerdict v) {
  constexpr std::array<std::string_view, 4> kNames{"pass", "warn", "fail", "unknown"};
  return kNames[static_cast<size_t>(v)];
}

CurveJudgement JudgeCurves(const std::vector<ComparedCurve>& curves) {
  CurveJudgement out;
  JudgeRate(curves, &out);
  const ComparedCurve* decides = FindCurve(curves, CurveKind::kLoss);
  if (decides) {
    JudgeStep1(*decides, &out);
    JudgeNorm(curves, &out);
  } else {
    decides = FindCurve(curves, CurveKind::kGradNorm);
  }
  if (!decides) return out;
  JudgeDecisive(*decides, &out);
  JudgeFactors(curves, &out);
  JudgeEvaluation(curves, &out);
  if (IsFine(out.verdict)) JudgeOthers(curves, *decides, &out);
  LeadWithFirst(&out);
  return out;
}

}  // namespace msprobe
