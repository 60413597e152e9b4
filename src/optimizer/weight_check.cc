#include "optimizer/weight_check.h"

#include <algorithm>
#include <cmath>

namespace msprobe {
namespace {

constexpr double kOperations = 8;  // that round, one behind the other, at most
constexpr double kStateOperations = 4;
constexpr double kShareAllowed = 1e-4;  // of elements: a sign, or a division at the edge of what is representable

void Judge(double found, double expected, double allowed, OffCount* out) {
  if (std::isnan(found) && std::isnan(expected)) return;
  if (found == expected) return;
  const double error = std::fabs(found - expected);
  const double ratio = error / std::max(allowed, 1e-300);
  if (!(error <= allowed)) ++out->off;
  out->worst = std::max(out->worst, std::isnan(ratio) ? INFINITY : ratio);
}

double RmsOf(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += v * v;
  return values.empty() ? 0 : std::sqrt(sum / static_cast<double>(values.size()));
}

/// What rounds a state: its type, or the digits that are kept of it.
double StateUlp(double value, DType dtype, int held_bits) {
  const double ulp = UlpAt(value, dtype);
  if (held_bits == 0 || held_bits >= FractionBits(dtype) || value == 0 || !std::isfinite(value)) return ulp;
  return std::max(ulp, std::ldexp(1.0, std::ilogb(value) - held_bits));
}

void CheckStates(const WeightValues& values, const UpdatedWeight& updated, double unit, const UpdateRule& rule,
                 WeightCheck* out) {
  for (size_t role = 0; role < kStateRoles; ++role) {
    const std::vector<double>& expected = updated.states[role];
    const StateValues& state = values.states[role];
    for (size_t i = 0; i < expected.size() && i < state.after.size(); ++i) {
      const double allowed = 1.1 * StateUlp(expected[i], state.dtype, rule.held_bits) +
                             (kStateOperations * unit + rule.noise) * updated.magnitudes[role][i];
      Judge(state.after[i], expected[i], allowed, &out->states[role]);
    }
  }
}

}  // namespace

bool WeightCheck::fine() const {
  const auto few = [&](const OffCount& c) {
    return static_cast<double>(c.off) <= kShareAllowed * static_cast<double>(elements);
  };
  return few(weight) && std::all_of(states.begin(), states.end(), few);
}

size_t WeightCheck::off() const {
  size_t out = weight.off;
  for (const OffCount& state : states) out += state.off;
  return out;
}

void WeightCheck::Add(const WeightCheck& o) {
  elements += o.elements;
  weight.Add(o.weight);
  for (size_t i = 0; i < kStateRoles; ++i) states[i].Add(o.states[i]);
  worst_ulp = std::max(worst_ulp, o.worst_ulp);
  lost += o.lost;
  stochastic += o.stochastic;
  computed = computed && o.computed;
}

WeightCheck CheckUpdate(const UpdateRule& rule, const WeightValues& values) {
  WeightCheck out;
  out.elements = values.before.size();
  const UpdatedWeight updated = ApplyRule(rule, values);
  out.computed = updated.computed;
  if (!updated.computed) return out;
  const double unit = std::ldexp(1.0, -FractionBits(values.coarsest) - 1);
  // The update may take a state before or after it is rounded to the digits that are kept of it.
  const double held = rule.held_bits > 0 ? std::ldexp(1.0, -rule.held_bits - 1) : 0;
  // Decay and update round one behind the other; in float32 the factor of the decay does so, too.
  const double roundings = FractionBits(values.dtype) >= 23 ? 2.1 : 1.1;
  const double rms = updated.noise > 0 ? RmsOf(updated.change) : 0;
  for (size_t i = 0; i < values.before.size(); ++i) {
    const double size = updated.sizes[i];
    const double largest = std::max(std::fabs(values.before[i]), std::fabs(updated.weight[i]));
    const double ulp = UlpAt(largest, values.dtype);
    const double allowed = roundings * ulp + (kOperations * unit + rule.noise + held) * size +
                           updated.noise * std::max(size, rms) +
                           rule.noise * std::fabs(rule.lr * rule.weight_decay * values.before[i]);
    Judge(values.after[i], updated.weight[i], allowed, &out.weight);
    const double error = std::fabs(values.after[i] - updated.weight[i]) / ulp;
    if (std::isfinite(error)) out.worst_ulp = std::max(out.worst_ulp, error);
    const double meant = std::fabs(updated.weight[i] - values.before[i]);
    out.stochastic += values.after[i] != values.before[i] && meant > 0 && meant < 0.4 * ulp &&
                      std::fabs(values.after[i] - values.before[i]) > 0.9 * UlpAt(values.before[i], values.dtype);
    out.lost += values.after[i] == values.before[i] && updated.weight[i] != values.before[i];
  }
  CheckStates(values, updated, unit, rule, &out);
  return out;
}

}  // namespace msprobe
