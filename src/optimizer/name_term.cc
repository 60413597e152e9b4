#include "optimizer/name_term.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/message.h"
#include "base/text.h"
#include "optimizer/state_digits.h"
#include "optimizer/terms.h"

namespace msprobe {
namespace {

constexpr int64_t kSample = 512, kStretches = 4;  // elements of a stretch, and stretches of a weight
constexpr size_t kMostWeights = 24, kMostSteps = 6;
constexpr int64_t kMostWhole = int64_t{1} << 20;
constexpr int kMostExponent = 24;  // of a loss scale
constexpr int kCoarseBits = 11;    // fewer are those of bfloat16 and float16

/// Numbers of some elements of a weight at a step.
struct TermSample {
  size_t step = 0, group = 0;
  WeightValues values;
};

using TermScope = std::vector<size_t>;  // places of weights

class TermSearch {
 public:
  TermSearch(const OptimizerRecord& record, const std::vector<ReplayedWeight>& weights, const TermScope& scope)
      : record_(record) {
    for (size_t k = 0; k < std::min(scope.size(), kMostWeights); ++k) {
      // Spread over the scope: the first weights are the embedding and its neighbours.
      const size_t at = scope[k * scope.size() / std::min(scope.size(), kMostWeights)];
      for (size_t s = 0; s < std::min(record.steps.size(), kMostSteps); ++s) Take(weights[at].name, at, s);
    }
    std::map<std::pair<size_t, size_t>, NumberFit> fits;
    for (const TermSample& sample : samples_) fits[{sample.step, sample.group}].Add(RuleOf(sample), sample.values);
    for (const auto& [key, fit] : fits) fitted_[key] = fit.Result();
  }

  bool empty() const { return samples_.empty(); }
  const FittedNumbers& Fitted(size_t step, size_t group) const { return fitted_.at({step, group}); }
  const std::vector<TermSample>& samples() const { return samples_; }
  const UpdateRule& RuleOf(const TermSample& s) const { return record_.steps[s.step].groups[s.group]; }

  /// Whether the rules with these terms explain all samples.
  bool Explains(const std::vector<const UpdateTerm*>& terms) const {
    bool applied = false;
    for (const TermSample& sample : samples_) {
      UpdateRule rule = RuleOf(sample);
      size_t count = 0;
      for (const UpdateTerm* term : terms) count += term->apply(fitted_.at({sample.step, sample.group}), &rule);
      // Two terms of which one takes back what the other does are none.
      applied = applied || (count == terms.size() && !IsSameRule(RuleOf(sample), rule));
      const WeightCheck check = CheckUpdate(rule, sample.values);
      if (!check.computed || !check.fine()) return false;
    }
    return applied;
  }

 private:
  void Take(const std::string& name, size_t likely, size_t s) {
    const RecordedStep& step = record_.steps[s];
    const RecordedWeight* weight = FindWeight(step, name, likely);
    if (!weight || step.skipped || !weight->grad.data) return;
    const int64_t count = ElementsOf(*weight);
    const bool whole = NeedsWhole(step.groups[weight->group].kind);
    if (whole && count > kMostWhole) return;
    const int64_t size = whole ? count : std::min(count, kSample);
    for (int64_t k = 0; k < (size == count ? 1 : kStretches); ++k) {
      const int64_t begin = k * (count - size) / std::max<int64_t>(kStretches - 1, 1);
      samples_.push_back({s, weight->group, LoadValues(*weight, begin, begin + size, CountOfStep(step))});
      CountAtEach(step, *weight, &samples_.back().values);
    }
  }

  /// What one count would be that goes up at each weight with a gradient, or at each group.
  static void CountAtEach(const RecordedStep& step, const RecordedWeight& weight, WeightValues* values) {
    size_t count = 0, place = 0;
    for (const RecordedWeight& w : step.weights) {
      if (&w == &weight) place = count;
      count += w.grad.data != nullptr;
    }
    const auto counted = [&](size_t each, size_t at) {
      return (values->steps - 1) * static_cast<double>(each) + static_cast<double>(at) + 1;
    };
    values->steps_at_weights = counted(count, place);
    values->steps_at_groups = counted(step.groups.size(), weight.group);
  }

  const OptimizerRecord& record_;
  std::vector<TermSample> samples_;
  std::map<std::pair<size_t, size_t>, FittedNumbers> fitted_;
};

bool IsFittedTerm(std::string_view id) {
  for (const std::string_view fitted : {"lr", "gradient_scale", "weight_decay", "beta1", "beta2", "momentum"}) {
    if (id == fitted) return true;
  }
  return false;
}

/// The learning rate that was applied, step by step, and whose it is.
Message RateText(const OptimizerRecord& record, const TermSearch& search) {
  std::vector<Message> steps;
  std::set<size_t> told;
  int shift = 0;
  bool shifted = true;
  for (const TermSample& sample : search.samples()) {
    const auto fitted = search.Fitted(sample.step, sample.group).lr;
    if (!fitted || !told.insert(sample.step).second) continue;
    const double declared = search.RuleOf(sample).lr;
    steps.push_back(
        Msg("step {} says {:.6g} and applies {:.6g}", record.steps[sample.step].step, declared, fitted->value));
    for (const int by : {-1, 1}) {
      const auto other = static_cast<int64_t>(sample.step) + by;
      if (other < 0 || other >= static_cast<int64_t>(record.steps.size())) continue;
      const std::vector<UpdateRule>& groups = record.steps[static_cast<size_t>(other)].groups;
      if (sample.group >= groups.size()) continue;
      const double rate = groups[sample.group].lr;
      if (rate == declared || std::fabs(fitted->value - rate) > 1e-3 * std::fabs(rate)) continue;
      shifted = shifted && (shift == 0 || shift == by);
      shift = by;
    }
  }
  const Message out = Msg("the learning rate is another one: {}", Joined(steps, Msg("; ")));
  if (!shifted || shift == 0) return out;
  return Msg("{}, {}", out, shift > 0 ? Msg("that of the step after it") : Msg("that of the step before it"));
}

/// A scale of the gradient is the clipping, or the loss scale.
TermFinding ScaleFinding(const OptimizerRecord& record, const std::vector<StepNorm>& norms, const TermSearch& search) {
  TermFinding out;
  std::vector<double> scales, applied;
  double slack = 1e-3;
  for (size_t s = 0; s < record.steps.size(); ++s) {
    for (const TermSample& sample : search.samples()) {
      if (sample.step != s) continue;
      const double scale = search.Fitted(s, sample.group).gradient_scale.value_or(FittedNumber{NAN, 0}).value;
      if (FractionBits(sample.values.coarsest) < kCoarseBits) slack = 2e-2;
      scales.push_back(scale * record.steps[s].loss_scale.value_or(1));
      for (const StepNorm& norm : norms) {
        if (norm.step == record.steps[s].step) applied.push_back(norm.norm * scale);
      }
      break;
    }
  }
  const auto same = [&](const std::vector<double>& v) {
    return !v.empty() &&
           std::all_of(v.begin(), v.end(), [&](double x) { return std::fabs(x - v[0]) <= slack * std::fabs(v[0]); });
  };
  const std::optional<double> declared = record.steps[0].loss_scale;
  const double exponent = scales.empty() ? 0 : std::log2(std::fabs(scales[0]));
  const bool power = same(scales) && std::fabs(exponent) >= 1 && std::fabs(exponent) <= kMostExponent &&
                     std::fabs(exponent - std::round(exponent)) < slack;
  if (declared && same(scales) && std::fabs(scales[0] - *declared) <= slack * *declared) {
    out.term = "loss_scale";
    out.text = Msg("the gradient is not divided by the loss scale {:.6g}", *declared);
  } else if (scales.size() > 1 && same(applied) && !same(scales)) {
    out.term = "clip_threshold";
    out.text = Msg("the optimizer clips the gradients to the norm {:.6g}", applied[0]);
  } else if (power) {
    out.term = "loss_scale";
    out.text = Msg("the gradient is multiplied by {:.6g}, a power of two, as a loss scale is", scales[0]);
  } else {
    out.term = "gradient_scale";
    out.text = Msg("the gradient is multiplied by {:.6g}", scales.empty() ? NAN : scales[0]);
    if (norms.size() == 1 && !applied.empty())
      out.text = Msg("{}, {}", out.text, Msg("to the norm {:.6g}", applied[0]));
  }
  return out;
}

/// The states that are kept with fewer digits than their type has.
Message StateTypeText(const OptimizerRecord& record, const std::vector<ReplayedWeight>& weights,
                      const TermScope& scope) {
  std::map<std::string, std::pair<DType, DType>> found;
  for (const RecordedStep& step : record.steps) {
    for (const size_t at : scope) {
      const RecordedWeight* weight = FindWeight(step, weights[at].name, at);
      if (!weight) continue;
      for (const auto& [name, state] : weight->states) {
        const DType held = HeldIn(state);
        if (held == DType::kUnknown || FractionBits(held) >= FractionBits(state.after.dtype)) continue;
        found.emplace(name, std::pair{held, state.after.dtype});
      }
    }
  }
  std::vector<Message> out;
  for (const auto& [name, types] : found) {
    out.push_back(Msg("{} is of type {} and keeps only the digits of {}", OneLine(name), DTypeName(types.second),
                      DTypeName(types.first)));
  }
  return Joined(out, Msg("; "));
}

Message NumberText(const UpdateRule& before, const UpdateRule& after, std::string_view id) {
  const auto both = [&](std::string_view name, double a, double b) {
    return Msg("the group says {} {:.6g}, the update has {:.6g}", name, a, b);
  };
  if (id == "eps") return both("eps", before.eps, after.eps);
  if (id == "beta1") return both("beta1", before.beta1, after.beta1);
  if (id == "beta2") return both("beta2", before.beta2, after.beta2);
  if (id == "weight_decay") return both("weight_decay", before.weight_decay, after.weight_decay);
  return Msg("{}, {}", both("momentum", before.momentum, after.momentum),
             Message(fmt::format("dampening {:.6g} and {:.6g}", before.dampening, after.dampening)));
}

TermFinding Describe(const OptimizerRecord& record, const std::vector<StepNorm>& norms, const TermSearch& search,
                     const UpdateTerm& term, const std::vector<ReplayedWeight>& weights, const TermScope& scope) {
  if (term.id == "gradient_scale") return ScaleFinding(record, norms, search);
  TermFinding out{std::string(term.id), KnownText(term.text), {}, {}, {}};
  if (term.id == "lr") out.text = RateText(record, search);
  if (term.id == "state_dtype") out.text = StateTypeText(record, weights, scope);
  if (term.id != "lr" && (IsFittedTerm(term.id) || term.id == "eps")) {
    const TermSample& last = search.samples().back();
    UpdateRule rule = search.RuleOf(last);
    (void)term.apply(search.Fitted(last.step, last.group), &rule);
    out.text = NumberText(search.RuleOf(last), rule, term.id);
  }
  return out;
}

/// What explains the weights: one term, else two.
std::optional<TermFinding> Explain(const OptimizerRecord& record, const std::vector<StepNorm>& norms,
                                   const std::vector<ReplayedWeight>& weights, const TermScope& scope, bool pairs) {
  const TermSearch search(record, weights, scope);
  if (search.empty()) return std::nullopt;
  std::optional<TermFinding> out;
  for (const UpdateTerm& term : UpdateTerms()) {
    if (out && (IsFittedTerm(term.id) || out->term == term.id)) continue;
    if (!search.Explains({&term})) continue;
    if (!out) {
      out = Describe(record, norms, search, term, weights, scope);
    } else {
      out->others.emplace_back(term.id);
    }
  }
  if (out || !pairs) return out;
  for (const UpdateTerm& a : UpdateTerms()) {
    for (const UpdateTerm& b : UpdateTerms()) {
      if (&a >= &b || a.id == b.id || !search.Explains({&a, &b})) continue;
      TermFinding both = Describe(record, norms, search, a, weights, scope);
      const TermFinding second = Describe(record, norms, search, b, weights, scope);
      both.term += " + " + second.term;
      both.text = Msg("{}; {}", both.text, second.text);
      return both;
    }
  }
  return std::nullopt;
}

Message ScopeText(const std::vector<ReplayedWeight>& weights, const TermScope& scope) {
  size_t judged = 0, flat = 0, wrong_flat = 0;
  for (const ReplayedWeight& w : weights) {
    judged += w.check.elements > 0 || !w.check.computed;
    flat += (w.check.elements > 0 || !w.check.computed) && w.shape.size() <= 1;
  }
  for (const size_t at : scope) wrong_flat += weights[at].shape.size() <= 1;
  if (scope.size() == judged) return Msg("all weights");
  if (wrong_flat == scope.size() && wrong_flat == flat) return Msg("weights of one dimension");
  if (wrong_flat == 0 && scope.size() == judged - flat) return Msg("weights of two dimensions and more");
  return Msg("{} of {} weights", scope.size(), judged);
}

}  // namespace

const RecordedWeight* FindWeight(const RecordedStep& step, const std::string& name, size_t likely) {
  if (likely < step.weights.size() && step.weights[likely].name == name) return &step.weights[likely];
  for (const RecordedWeight& w : step.weights) {
    if (w.name == name) return &w;
  }
  return nullptr;
}

std::vector<TermFinding> NameTerms(const OptimizerRecord& record, const std::vector<StepNorm>& norms,
                                   const std::vector<ReplayedWeight>& weights, const std::vector<size_t>& wrong) {
  TermScope flat, others;
  for (const size_t at : wrong) (weights[at].shape.size() <= 1 ? flat : others).push_back(at);
  std::vector<TermScope> scopes{wrong};
  if (auto found = Explain(record, norms, weights, wrong, false); !found && !flat.empty() && !others.empty()) {
    // One term for all does not do: perhaps one for those of one dimension, and one for the others.
    if (Explain(record, norms, weights, flat, false) && Explain(record, norms, weights, others, false)) {
      scopes = {flat, others};
    }
  }
  std::vector<TermFinding> out;
  for (const TermScope& scope : scopes) {
    auto found = Explain(record, norms, weights, scope, true);
    if (!found)
      found = TermFinding{"", Msg("no term that is known, nor two of them, explains what was done"), {}, {}, {}};
    found->scope = ScopeText(weights, scope);
    for (const size_t at : scope) found->weights.push_back(weights[at].name);
    out.push_back(std::move(*found));
  }
  return out;
}

}  // namespace msprobe
