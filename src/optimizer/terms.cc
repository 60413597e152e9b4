#include "optimizer/terms.h"

#include <algorithm>
#include <cmath>

#include "optimizer/weight_update.h"

namespace msprobe {
namespace {

constexpr double kMostNoise = 0.02;

bool IsAdam(const UpdateRule& r) { return r.kind == OptimizerKind::kAdam || r.kind == OptimizerKind::kAdamW; }

template <typename T>
bool Set(T* to, const T& value) {
  if (*to == value) return false;
  *to = value;
  return true;
}

/// A number that was fitted and differs from what the rule says by more than rounding.
bool SetFitted(const std::optional<FittedNumber>& fitted, double* to, UpdateRule* rule) {
  if (!fitted || std::fabs(fitted->value - *to) <= std::max(1e-5, fitted->noise) * std::fabs(*to)) return false;
  *to = fitted->value;
  rule->noise = std::max(rule->noise, fitted->noise);
  return true;
}

template <int kExponent>
bool SetEps(const FittedNumbers&, UpdateRule* r) {
  return IsAdam(*r) && Set(&r->eps, std::pow(10.0, kExponent));
}

constexpr UpdateTerm kTerms[] = {
    {"not_updated", "the weight stays as it is",
     [](const FittedNumbers&, UpdateRule* r) { return !r->frozen && Set(&r->frozen, true); }},
    {"bias_correction", "the bias of the moments is not corrected",
     [](const FittedNumbers&, UpdateRule* r) {
       if (!IsAdam(*r) || !r->correction1 || !r->correction2) return false;
       r->correction1 = r->correction2 = false;
       return true;
     }},
    {"bias_correction_missing", "the bias of the moments is corrected, though the group says that it is not",
     [](const FittedNumbers&, UpdateRule* r) {
       if (!IsAdam(*r) || r->correction1 || r->correction2) return false;
       r->correction1 = r->correction2 = true;
       return true;
     }},
    {"bias_correction1", "the bias of the first moment is not corrected",
     [](const FittedNumbers&, UpdateRule* r) { return IsAdam(*r) && Set(&r->correction1, false); }},
    {"bias_correction2", "the bias of the second moment is not corrected",
     [](const FittedNumbers&, UpdateRule* r) { return IsAdam(*r) && Set(&r->correction2, false); }},
    {"bias_correction2", "the root of the second moment is divided by its correction, not by the root of that",
     [](const FittedNumbers&, UpdateRule* r) { return IsAdam(*r) && Set(&r->root, RootPlace::kOfMoment); }},
    {"bias_correction", "each moment has the correction of the other",
     [](const FittedNumbers&, UpdateRule* r) {
       return IsAdam(*r) && r->beta1 != r->beta2 && Set(&r->exchanged_corrections, true);
     }},
    {"second_moment_root", "the update is divided by the second moment, not by its root",
     [](const FittedNumbers&, UpdateRule* r) { return IsAdam(*r) && Set(&r->root, RootPlace::kNone); }},
    {"old_moment", "the update takes the first moment as it was before the step",
     [](const FittedNumbers&, UpdateRule* r) { return IsAdam(*r) && Set(&r->old_moment, true); }},
    {"whole_gradient", "the first moment takes the whole gradient, not its share 1 - beta1",
     [](const FittedNumbers&, UpdateRule* r) { return IsAdam(*r) && Set(&r->whole_gradient, true); }},
    {"step_count", "the count of steps is one too small",
     [](const FittedNumbers&, UpdateRule* r) {
       return (IsAdam(*r) || r->kind == OptimizerKind::kAdafactor) && Set<int64_t>(&r->step_offset, -1);
     }},
    {"step_count", "the count of steps is one too large",
     [](const FittedNumbers&, UpdateRule* r) {
       return (IsAdam(*r) || r->kind == OptimizerKind::kAdafactor) && Set<int64_t>(&r->step_offset, 1);
     }},
    {"step_count", "there is one count of steps for all weights, counted at each of them",
     [](const FittedNumbers&, UpdateRule* r) { return IsAdam(*r) && Set(&r->count, StepCount::kEachWeight); }},
    {"step_count", "there is one count of steps for all groups, counted at each of them",
     [](const FittedNumbers&, UpdateRule* r) { return IsAdam(*r) && Set(&r->count, StepCount::kEachGroup); }},
    {"master_not_updated", "each step starts from a finer copy of the weight that is never updated",
     [](const FittedNumbers&, UpdateRule* r) { return Set(&r->from_copy, true); }},
    {"eps_inside_root", "eps is added inside the root",
     [](const FittedNumbers&, UpdateRule* r) { return IsAdam(*r) && Set(&r->eps_place, EpsPlace::kInsideRoot); }},
    {"eps_before_correction", "eps is added before the bias of the second moment is corrected",
     [](const FittedNumbers&, UpdateRule* r) { return IsAdam(*r) && Set(&r->eps_place, EpsPlace::kBeforeCorrection); }},
    {"swapped_betas", "the two betas are swapped",
     [](const FittedNumbers&, UpdateRule* r) {
       if (r->kind == OptimizerKind::kSgd || r->beta1 == r->beta2) return false;
       std::swap(r->beta1, r->beta2);
       return true;
     }},
    {"maximize", "the gradient is followed upwards",
     [](const FittedNumbers&, UpdateRule* r) { return !r->maximize && Set(&r->maximize, true); }},
    {"maximize", "the gradient is followed downwards, though the group says maximize",
     [](const FittedNumbers&, UpdateRule* r) { return r->maximize && Set(&r->maximize, false); }},
    {"nesterov", "the momentum is Nesterov's, though the group says that it is not",
     [](const FittedNumbers&, UpdateRule* r) {
       return (r->kind == OptimizerKind::kMuon || r->momentum != 0) && !r->nesterov && Set(&r->nesterov, true);
     }},
    {"nesterov", "the momentum is not Nesterov's, though the group says nesterov",
     [](const FittedNumbers&, UpdateRule* r) { return r->nesterov && Set(&r->nesterov, false); }},
    {"amsgrad", "amsgrad is not applied: the last second moment counts, not the largest",
     [](const FittedNumbers&, UpdateRule* r) { return IsAdam(*r) && r->amsgrad && Set(&r->amsgrad, false); }},
    {"amsgrad", "amsgrad is applied, though the group says that it is not",
     [](const FittedNumbers&, UpdateRule* r) { return IsAdam(*r) && !r->amsgrad && Set(&r->amsgrad, true); }},
    {"dampening", "the momentum is not dampened, though the group says dampening",
     [](const FittedNumbers&, UpdateRule* r) { return r->dampening != 0 && Set(&r->dampening, 0.0); }},
    {"dampening", "the momentum is dampened by as much as it keeps, though the group says that it is not",
     [](const FittedNumbers&, UpdateRule* r) {
       return r->kind == OptimizerKind::kSgd && r->momentum != 0 && r->dampening == 0 &&
              Set(&r->dampening, r->momentum);
     }},
    {"sign_of_new_moment", "the sign is taken of the moment after its update, not before",
     [](const FittedNumbers&, UpdateRule* r) {
       return r->kind == OptimizerKind::kLion && Set(&r->sign_of_new_moment, true);
     }},
    {"weight_decay_missing", "the weight does not decay, though its group says weight_decay",
     [](const FittedNumbers&, UpdateRule* r) { return r->weight_decay != 0 && Set(&r->weight_decay, 0.0); }},
    {"decay_coupled", "the decay goes through the gradient and the moments (L2), not straight to the weight",
     [](const FittedNumbers&, UpdateRule* r) {
       return r->weight_decay != 0 && r->kind != OptimizerKind::kSgd && Set(&r->decay, DecayPlace::kCoupled);
     }},
    {"decay_decoupled", "the decay goes straight to the weight, not through the gradient (L2)",
     [](const FittedNumbers&, UpdateRule* r) {
       return r->weight_decay != 0 && r->decay == DecayPlace::kCoupled && Set(&r->decay, DecayPlace::kDecoupled);
     }},
    {"decay_without_rate", "the decay is not multiplied by the learning rate",
     [](const FittedNumbers&, UpdateRule* r) {
       return r->weight_decay != 0 && Set(&r->decay, DecayPlace::kWithoutRate);
     }},
    {"decay_after_update", "the decay multiplies the weight behind its update, not before it",
     [](const FittedNumbers&, UpdateRule* r) {
       const bool moves = IsAdam(*r) || r->kind == OptimizerKind::kLion;
       return moves && r->weight_decay != 0 && r->decay == DecayPlace::kDecoupled &&
              Set(&r->decay, DecayPlace::kAfterUpdate);
     }},
    {"update_clipping", "the update is not clipped by its root mean square",
     [](const FittedNumbers&, UpdateRule* r) {
       return r->kind == OptimizerKind::kAdafactor && Set(&r->clips_update, false);
     }},
    {"relative_step", "the learning rate does not fall with the root of the steps",
     [](const FittedNumbers&, UpdateRule* r) {
       return r->kind == OptimizerKind::kAdafactor && Set(&r->relative_step, false);
     }},
    {"scale_parameter", "the learning rate is not multiplied by the root mean square of the weight",
     [](const FittedNumbers&, UpdateRule* r) {
       return r->kind == OptimizerKind::kAdafactor && Set(&r->scales_by_weight, false);
     }},
    {"adjust_lr", "the learning rate is not adjusted to the shape",
     [](const FittedNumbers&, UpdateRule* r) {
       return r->kind == OptimizerKind::kMuon && r->adjust_lr != "none" && Set(&r->adjust_lr, std::string("none"));
     }},
    {"adjust_lr", "the learning rate is adjusted to the shape as match_rms_adamw says",
     [](const FittedNumbers&, UpdateRule* r) {
       return r->kind == OptimizerKind::kMuon && Set(&r->adjust_lr, std::string("match_rms_adamw"));
     }},
    {"state_dtype", "a state is kept with fewer digits than its type has",
     [](const FittedNumbers& f, UpdateRule* r) { return f.held_bits > 0 && Set(&r->held_bits, f.held_bits); }},
    {"eps", "eps has another value", SetEps<-5>},
    {"eps", "eps has another value", SetEps<-6>},
    {"eps", "eps has another value", SetEps<-7>},
    {"eps", "eps has another value", SetEps<-8>},
    {"eps", "eps has another value", SetEps<-10>},
    {"eps", "eps has another value", SetEps<-12>},
    {"eps", "eps has another value", SetEps<-15>},
    {"lr", "the learning rate is another one",
     [](const FittedNumbers& f, UpdateRule* r) { return SetFitted(f.lr, &r->lr, r); }},
    {"gradient_scale", "the gradient is multiplied by a number",
     [](const FittedNumbers& f, UpdateRule* r) { return SetFitted(f.gradient_scale, &r->gradient_scale, r); }},
    {"weight_decay", "weight_decay is another one",
     [](const FittedNumbers& f, UpdateRule* r) {
       return f.weight_decay && std::fabs(f.weight_decay->value) > 1e-7 &&
              SetFitted(f.weight_decay, &r->weight_decay, r);
     }},
    {"beta1", "beta1 is another one",
     [](const FittedNumbers& f, UpdateRule* r) {
       return r->kind != OptimizerKind::kSgd && SetFitted(f.beta1, &r->beta1, r);
     }},
    {"beta2", "beta2 is another one",
     [](const FittedNumbers& f, UpdateRule* r) {
       return r->kind != OptimizerKind::kSgd && SetFitted(f.beta2, &r->beta2, r);
     }},
    {"momentum", "momentum and dampening are others",
     [](const FittedNumbers& f, UpdateRule* r) {
       if (r->kind != OptimizerKind::kSgd && r->kind != OptimizerKind::kMuon) return false;
       const bool momentum = SetFitted(f.momentum, &r->momentum, r);
       const bool dampened = f.dampening && std::fabs(f.dampening->value - r->dampening) > 1e-4 &&
                             SetFitted(f.dampening, &r->dampening, r);
       return momentum || dampened;
     }},
};

/// What rounding does to a state.
double StateError(const StateValues& state, size_t i, double terms, DType coarsest) {
  return UlpAt(state.after[i], state.dtype) + std::ldexp(terms, -FractionBits(coarsest) - 1);
}

double GradientOf(const UpdateRule& rule, const WeightValues& in, size_t i) {
  double g = in.grad[i] * rule.gradient_scale * (rule.maximize ? -1 : 1);
  if (rule.decay == DecayPlace::kCoupled) g += rule.weight_decay * in.before[i];
  return g;
}

}  // namespace

std::span<const UpdateTerm> UpdateTerms() { return kTerms; }

std::optional<FittedNumber> NumberFit::Ratio::value() const {
  const double slope = xy / xx;
  if (!(xx > 0) || !std::isfinite(slope) || slope == 0) return std::nullopt;
  // If every element is off by its error, and all to one side.
  return FittedNumber{slope, std::min(x_sum / xx / std::fabs(slope), kMostNoise)};
}

void NumberFit::Add(const UpdateRule& rule, const WeightValues& values) {
  if (values.grad.size() != values.before.size()) return;
  for (size_t role = 0; role < kStateRoles; ++role) {
    dtypes_[role] = values.states[role].dtype;
    for (const double v : values.states[role].after) digits_[role].Add(v);
  }
  switch (rule.kind) {
    case OptimizerKind::kAdam:
    case OptimizerKind::kAdamW: AddAdam(rule, values); break;
    case OptimizerKind::kSgd: AddSgd(rule, values); break;
    case OptimizerKind::kLion:
    case OptimizerKind::kMuon: {
      const StateValues& m = values.of(StateRole::kFirst);
      const double share = rule.kind == OptimizerKind::kLion ? rule.beta2 : rule.momentum;
      for (size_t i = 0; m.recorded && i < m.after.size(); ++i) {
        const double g = GradientOf(rule, values, i);
        const double error = StateError(m, i, std::fabs(m.before[i]) + std::fabs(g), values.coarsest);
        scale_.Add((1 - share) * g, m.after[i] - share * m.before[i], error);
        beta2_.Add(m.before[i] - g, m.after[i] - g, error);
      }
      break;
    }
    case OptimizerKind::kAdafactor:
    case OptimizerKind::kUnknown: break;
  }
  AddWeight(rule, values);
}

void NumberFit::AddAdam(const UpdateRule& rule, const WeightValues& values) {
  const StateValues &m = values.of(StateRole::kFirst), &v = values.of(StateRole::kSecond);
  if (!m.recorded || !v.recorded) return;
  for (size_t i = 0; i < m.after.size(); ++i) {
    const double g = GradientOf(rule, values, i);
    const double error = StateError(m, i, std::fabs(m.before[i]) + std::fabs(g), values.coarsest);
    scale_.Add((1 - rule.beta1) * g, m.after[i] - rule.beta1 * m.before[i], error);
    beta1_.Add(m.before[i] - g, m.after[i] - g, error);
    beta2_.Add(v.before[i] - g * g, v.after[i] - g * g, StateError(v, i, v.before[i] + g * g, values.coarsest));
  }
}

void NumberFit::AddSgd(const UpdateRule& rule, const WeightValues& values) {
  const StateValues& buffer = values.of(StateRole::kFirst);
  for (size_t i = 0; i < values.before.size(); ++i) {
    const double g = GradientOf(rule, values, i);
    if (!buffer.recorded) {
      if (rule.lr != 0)
        scale_.Add(g, (values.before[i] - values.after[i]) / rule.lr, UlpAt(values.before[i], values.dtype) / rule.lr);
      continue;
    }
    const double b = buffer.before[i], y = buffer.after[i];
    const double taken = buffer.had_before ? 1 - rule.dampening : 1;
    const double error = StateError(buffer, i, std::fabs(b) + std::fabs(g), values.coarsest);
    scale_.Add(taken * g, y - (buffer.had_before ? rule.momentum * b : 0), error);
    if (!buffer.had_before) continue;
    aa_ += b * b;
    ab_ += b * g;
    bb_ += g * g;
    ay_ += b * y;
    by_ += g * y;
  }
}

void NumberFit::AddWeight(const UpdateRule& rule, const WeightValues& values) {
  UpdateRule one = rule;
  if (rule.lr == 0) one.lr = 1;
  if (rule.kind == OptimizerKind::kAdafactor) return;
  const UpdatedWeight updated = ApplyRule(one, values);
  if (!updated.computed) return;
  for (size_t i = 0; i < values.before.size(); ++i) {
    const double w = values.before[i], moved = w - values.after[i], unit = updated.change[i] / one.lr;
    const double with_decay = unit + (rule.decay == DecayPlace::kDecoupled ? rule.weight_decay * w : 0);
    const double error = UlpAt(std::max(std::fabs(w), std::fabs(values.after[i])), values.dtype) +
                         std::ldexp(std::fabs(moved), -FractionBits(values.coarsest));
    lr_.Add(with_decay, moved, error);
    if (rule.lr != 0 && rule.decay != DecayPlace::kCoupled) decay_.Add(w * rule.lr, moved - updated.change[i], error);
  }
}

FittedNumbers NumberFit::Result() const {
  FittedNumbers out;
  out.lr = lr_.value();
  out.beta1 = beta1_.value();
  out.beta2 = beta2_.value();
  out.weight_decay = decay_.value();
  out.gradient_scale = scale_.value();
  for (size_t role = 0; role < kStateRoles; ++role) {
    const DType held = digits_[role].Held(dtypes_[role]);
    if (held == DType::kUnknown || FractionBits(held) >= FractionBits(dtypes_[role])) continue;
    const int bits = FractionBits(held);
    out.held_bits = out.held_bits == 0 ? bits : std::min(out.held_bits, bits);
  }
  const double determinant = aa_ * bb_ - ab_ * ab_;
  if (determinant > 1e-9 * aa_ * bb_) {
    constexpr double kNoise = 1e-4;
    out.momentum = FittedNumber{(ay_ * bb_ - by_ * ab_) / determinant, kNoise};
    out.dampening = FittedNumber{1 - (by_ * aa_ - ay_ * ab_) / determinant, kNoise};
  }
  return out;
}

}  // namespace msprobe
