#include "optimizer/weight_update.h"

#include <cmath>
#include <utility>

#include "tensor/kernels/finfo.h"

namespace msprobe {
namespace {

/// The gradient as the rule sees it: scaled, turned round, with coupled decay; and its size if nothing cancelled.
struct SeenGradient {
  double value, size;
};

SeenGradient Gradient(const UpdateRule& rule, const WeightValues& in, size_t i) {
  double g = in.grad[i] * rule.gradient_scale;
  if (rule.maximize) g = -g;
  if (rule.decay != DecayPlace::kCoupled) return {g, std::fabs(g)};
  const double decay = rule.weight_decay * in.before[i];
  return {g + decay, std::fabs(g) + std::fabs(decay)};
}

/// The weight after its change, and after decay that does not go through the gradient.
double Moved(const UpdateRule& rule, double w, double change) {
  switch (rule.decay) {
    case DecayPlace::kDecoupled: return w * (1 - rule.lr * rule.weight_decay) - change;
    case DecayPlace::kWithoutRate: return w * (1 - rule.weight_decay) - change;
    case DecayPlace::kAfterUpdate: return (w - change) * (1 - rule.lr * rule.weight_decay);
    case DecayPlace::kCoupled: return w - change;
  }
  return w;
}

/// What the first moment is divided by.
double Divisor(const UpdateRule& rule, double second, double c2) {
  if (rule.root == RootPlace::kOfMoment) return std::sqrt(second) / c2 + rule.eps;
  if (rule.root == RootPlace::kNone) return second / c2 + rule.eps;
  switch (rule.eps_place) {
    case EpsPlace::kOutside: break;
    case EpsPlace::kInsideRoot: return std::sqrt(second / c2 + rule.eps);
    case EpsPlace::kBeforeCorrection: return (std::sqrt(second) + rule.eps) / std::sqrt(c2);
  }
  return std::sqrt(second / c2) + rule.eps;
}

void Reserve(StateRole role, size_t n, UpdatedWeight* out) {
  out->states[static_cast<size_t>(role)].resize(n);
  out->magnitudes[static_cast<size_t>(role)].resize(n);
}

/// `share` of the old value and the rest of the new one.
void Average(StateRole role, size_t i, double share, double old_value, double new_share, const SeenGradient& g,
             UpdatedWeight* out) {
  out->states[static_cast<size_t>(role)][i] = share * old_value + new_share * g.value;
  out->magnitudes[static_cast<size_t>(role)][i] = std::fabs(share * old_value) + std::fabs(new_share) * g.size;
}

double Corrected(double beta, double steps, bool corrects) { return corrects ? 1 - std::pow(beta, steps) : 1; }

void ApplyAdam(const UpdateRule& rule, const WeightValues& in, UpdatedWeight* out) {
  const size_t n = in.before.size();
  const StateValues &m = in.of(StateRole::kFirst), &v = in.of(StateRole::kSecond), &top = in.of(StateRole::kMaximum);
  if (!m.recorded || !v.recorded) return;
  const double counted = rule.count == StepCount::kOwn          ? in.steps
                         : rule.count == StepCount::kEachWeight ? in.steps_at_weights
                                                                : in.steps_at_groups;
  const double steps = std::max(counted + static_cast<double>(rule.step_offset), 0.0);
  double c1 = Corrected(rule.beta1, steps, rule.correction1), c2 = Corrected(rule.beta2, steps, rule.correction2);
  if (rule.exchanged_corrections) std::swap(c1, c2);
  if (c1 == 0 || c2 == 0) return;
  Reserve(StateRole::kFirst, n, out);
  Reserve(StateRole::kSecond, n, out);
  const bool keeps_top = rule.amsgrad && top.recorded;
  if (keeps_top) Reserve(StateRole::kMaximum, n, out);
  for (size_t i = 0; i < n; ++i) {
    const SeenGradient g = Gradient(rule, in, i);
    Average(StateRole::kFirst, i, rule.beta1, m.before[i], rule.whole_gradient ? 1 : 1 - rule.beta1, g, out);
    Average(StateRole::kSecond, i, rule.beta2, v.before[i], 1 - rule.beta2, {g.value * g.value, g.size * g.size}, out);
    double second = v.after[i];
    if (keeps_top) {
      const double largest = std::max(top.before[i], v.after[i]);
      out->states[static_cast<size_t>(StateRole::kMaximum)][i] = largest;
      out->magnitudes[static_cast<size_t>(StateRole::kMaximum)][i] = largest;
      second = largest;
    } else if (rule.amsgrad) {
      return;  // the maximum was not recorded
    }
    const double divisor = Divisor(rule, second, c2), first = rule.old_moment ? m.before[i] : m.after[i];
    const double change = divisor == 0 ? 0 : rule.lr / c1 * first / divisor;
    out->change[i] = change;
    out->sizes[i] = std::fabs(change);
    out->weight[i] = Moved(rule, in.before[i], change);
  }
  if (rule.in_float) out->noise = InfoOf(DType::kFloat32).eps() / std::min(c1, c2);
  out->computed = true;
}

void ApplySgd(const UpdateRule& rule, const WeightValues& in, UpdatedWeight* out) {
  const size_t n = in.before.size();
  const StateValues& buffer = in.of(StateRole::kFirst);
  const bool keeps = rule.momentum != 0;
  if (keeps && !buffer.recorded) return;
  if (keeps) Reserve(StateRole::kFirst, n, out);
  for (size_t i = 0; i < n; ++i) {
    const SeenGradient g = Gradient(rule, in, i);
    double direction = g.value, size = g.size;
    if (keeps) {
      const double share = buffer.had_before ? rule.momentum : 0, taken = buffer.had_before ? 1 - rule.dampening : 1;
      Average(StateRole::kFirst, i, share, buffer.before[i], taken, g, out);
      const double kept = std::fabs(buffer.after[i]);
      direction = rule.nesterov ? g.value + rule.momentum * buffer.after[i] : buffer.after[i];
      size = rule.nesterov ? g.size + std::fabs(rule.momentum) * kept : kept;
    }
    out->change[i] = rule.lr * direction;
    out->sizes[i] = std::fabs(rule.lr) * size;
    out->weight[i] = Moved(rule, in.before[i], out->change[i]);
  }
  out->computed = true;
}

void ApplyLion(const UpdateRule& rule, const WeightValues& in, UpdatedWeight* out) {
  const size_t n = in.before.size();
  const StateValues& m = in.of(StateRole::kFirst);
  if (!m.recorded) return;
  Reserve(StateRole::kFirst, n, out);
  for (size_t i = 0; i < n; ++i) {
    const SeenGradient g = Gradient(rule, in, i);
    Average(StateRole::kFirst, i, rule.beta2, m.before[i], 1 - rule.beta2, g, out);
    const double mixed = rule.sign_of_new_moment ? m.after[i] : rule.beta1 * m.before[i] + (1 - rule.beta1) * g.value;
    const double size = std::fabs(rule.beta1 * m.before[i]) + std::fabs(1 - rule.beta1) * g.size;
    // Where the terms cancel but for rounding, either sign is right: no weight is held to it.
    const bool clear = std::fabs(mixed) > size * std::ldexp(8.0, -FractionBits(in.coarsest));
    out->change[i] = rule.lr * (mixed > 0 ? 1 : mixed < 0 ? -1 : 0);
    out->sizes[i] = std::fabs(out->change[i]);
    out->weight[i] = clear || mixed == 0 ? Moved(rule, in.before[i], out->change[i]) : in.after[i];
  }
  out->computed = true;
}

}  // namespace

UpdatedWeight ApplyRule(const UpdateRule& rule, const WeightValues& values) {
  UpdatedWeight out;
  if (values.grad.size() != values.before.size()) return out;
  out.weight.resize(values.before.size());
  out.change.resize(values.before.size());
  out.sizes.resize(values.before.size());
  if (rule.from_copy) {
    if (values.copy.size() != values.before.size()) return out;
    WeightValues from = values;
    from.before = values.copy;
    UpdateRule own = rule;
    own.from_copy = false;
    return ApplyRule(own, from);
  }
  if (rule.frozen) {
    out.weight = values.before;
    out.computed = true;
    return out;
  }
  switch (rule.kind) {
    case OptimizerKind::kUnknown: break;
    case OptimizerKind::kSgd: ApplySgd(rule, values, &out); break;
    case OptimizerKind::kAdam:
    case OptimizerKind::kAdamW: ApplyAdam(rule, values, &out); break;
    case OptimizerKind::kLion: ApplyLion(rule, values, &out); break;
    case OptimizerKind::kAdafactor: ApplyAdafactor(rule, values, &out); break;
    case OptimizerKind::kMuon: ApplyMuon(rule, values, &out); break;
  }
  return out;
}

}  // namespace msprobe
