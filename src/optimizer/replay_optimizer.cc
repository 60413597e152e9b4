#include "optimizer/replay_optimizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/message.h"
#include "base/parallel.h"
#include "base/text.h"
#include "optimizer/name_term.h"
#include "optimizer/weight_values.h"

namespace msprobe {
namespace {

constexpr int64_t kChunk = 1 << 16;
// Elements of a matrix whose update needs all of it, in memory or in time.
constexpr int64_t kMostOfAdafactor = int64_t{1} << 26, kMostOfMuon = int64_t{1} << 20;
constexpr double kClipSlack = 1e-3, kSameNorm = 1e-4;
constexpr double kStochasticShare = 0.01;  // of small updates; rounding to nearest lets none move a weight

double SumOfSquares(const std::vector<double>& values) {
  double out = 0;
  for (const double v : values) out += v * v;
  return out;
}

/// Checks a weight of a step; adds the squares of its gradient.
WeightCheck CheckWeight(const RecordedStep& step, const RecordedWeight& weight, double* squares) {
  const UpdateRule& rule = step.groups[weight.group];
  const int64_t count = ElementsOf(weight);
  const int64_t chunk = NeedsWhole(rule.kind) ? std::max<int64_t>(count, 1) : kChunk;
  WeightCheck out;
  for (int64_t begin = 0; begin < count; begin += chunk) {
    const WeightValues values = LoadValues(weight, begin, std::min(count, begin + chunk), CountOfStep(step));
    *squares += SumOfSquares(values.grad);
    if (values.grad.empty()) continue;  // without a gradient there is no update
    out.Add(CheckUpdate(rule, values));
  }
  return out;
}

bool TooLarge(const RecordedStep& step, const RecordedWeight& weight) {
  const OptimizerKind kind = step.groups[weight.group].kind;
  return NeedsWhole(kind) && ElementsOf(weight) > (kind == OptimizerKind::kMuon ? kMostOfMuon : kMostOfAdafactor);
}

/// All weights of a step, in parallel.
Status ReplayStep(const RecordedStep& step, OptimizerReplay* out) {
  if (step.skipped) {
    out->notes.push_back(Msg("step {} was left out by the loss scaler: its gradients are not finite", step.step));
    return OkStatus();
  }
  std::vector<double> squares(out->weights.size(), 0.0);
  std::vector<char> left_out(out->weights.size(), 0);
  MSP_RETURN_IF_ERROR(ParallelFor(out->weights.size(), [&](size_t i) -> Status {
    const RecordedWeight* weight = FindWeight(step, out->weights[i].name, i);
    if (!weight) return OkStatus();
    left_out[i] = TooLarge(step, *weight);
    if (!left_out[i]) out->weights[i].check.Add(CheckWeight(step, *weight, &squares[i]));
    return OkStatus();
  }));
  for (size_t i = 0; i < left_out.size(); ++i) {
    if (!left_out[i]) continue;
    out->notes.push_back(Msg("{}: a matrix too large for this rule is left out", OneLine(out->weights[i].name)));
  }
  const double sum = std::accumulate(squares.begin(), squares.end(), 0.0);
  out->steps.push_back({step.step, std::sqrt(sum), step.groups[0].lr});
  return OkStatus();
}

/// Weight decay that rounds away: 1 - lr * decay times a weight is the weight.
void NoteLostDecay(const OptimizerRecord& record, OptimizerReplay* out) {
  size_t lost = 0, stochastic = 0;
  for (const ReplayedWeight& w : out->weights) lost += w.check.lost, stochastic += w.check.stochastic;
  // What is rounded at random is held by the mean of many steps.
  if (lost > 0 && static_cast<double>(stochastic) > kStochasticShare * static_cast<double>(lost)) return;
  for (const RecordedStep& step : record.steps) {
    for (const RecordedWeight& w : step.weights) {
      const UpdateRule& rule = step.groups[w.group];
      const double decay = rule.lr * rule.weight_decay;
      if (decay == 0 || rule.decay == DecayPlace::kCoupled || FractionBits(w.before.dtype) > 10) continue;
      if (decay >= std::ldexp(1.0, -FractionBits(w.before.dtype) - 2)) continue;
      out->notes.push_back(Msg("a weight decay of {:.3g} a step is less than a {} weight can hold: it has no effect",
                               decay, DTypeName(w.before.dtype)));
      out->cautions.push_back(out->notes.back());
      return;
    }
  }
}

/// The norm of the gradients against the clipping that was declared.
void CheckClipping(const OptimizerRecord& record, OptimizerReplay* out) {
  const std::optional<double> declared = record.steps[0].clip_grad;
  bool same = out->steps.size() >= 2;
  double largest = 0;
  for (const StepNorm& s : out->steps) {
    same = same && std::fabs(s.norm - out->steps[0].norm) <= kSameNorm * out->steps[0].norm;
    largest = std::max(largest, s.norm);
  }
  const double scale = 1 / record.steps[0].loss_scale.value_or(1);
  const double threshold = out->steps[0].norm * scale;
  Message text;
  if (declared && largest * scale > *declared * (1 + kClipSlack)) {
    text = Msg("gradients are to be clipped to the norm {:.6g}, but step() was given the norm {:.6g}", *declared,
               largest * scale);
  } else if (declared && same && threshold > 0 && std::fabs(threshold - *declared) > kClipSlack * *declared) {
    text = Msg("gradients are to be clipped to the norm {:.6g}, but have the norm {:.6g} at each step", *declared,
               threshold);
  } else if (!declared && same && threshold > 0) {
    out->notes.push_back(Msg("the norm of the gradients is {:.6g} at each step: they were clipped to it", threshold));
  }
  if (!text.empty()) out->findings.push_back({"clip_threshold", text, Msg("all weights"), {}, {}});
}

/// Why updates that no term explains are no fault of the optimizer; empty where its class is a published rule.
Message UnknownFormula(const RecordedStep& step, OptimizerKind kind) {
  if (!step.foreign.empty()) {
    return Msg("its groups say {}, which the nearest rule ({}) does not know: its formula is not judged",
               OneLine(step.foreign), OptimizerKindName(kind));
  }
  if (IsPublishedRule(step.optimizer)) return {};
  return Msg("the formula of {} is not known, and the nearest rule ({}) does not explain its updates: not judged",
             OneLine(step.optimizer), OptimizerKindName(kind));
}

}  // namespace

StatusOr<OptimizerReplay> ReplayOptimizer(const OptimizerRecord& record) {
  OptimizerReplay out;
  const RecordedStep& first = record.steps[0];
  out.path = record.path;
  out.optimizer = first.optimizer;
  out.kind = first.groups[0].kind;
  out.notes = record.notes;
  for (const RecordedWeight& w : first.weights) {
    out.weights.push_back({w.name, w.before.shape, w.before.dtype, w.group, {}, true});
  }
  for (const RecordedStep& step : record.steps) MSP_RETURN_IF_ERROR(ReplayStep(step, &out));
  std::vector<size_t> wrong;
  size_t judged = 0;
  for (size_t i = 0; i < out.weights.size(); ++i) {
    ReplayedWeight& w = out.weights[i];
    if (w.check.elements == 0 && w.check.computed) continue;
    ++judged;
    w.fine = w.check.computed && w.check.fine();
    if (!w.fine) wrong.push_back(i);
  }
  if (judged == 0) {
    return BadInput(Msg("{} holds no weight with a gradient: record the training again", OneLine(record.path)));
  }
  if (out.steps.size() == 1) {
    out.notes.emplace_back(
        Msg("one step does not show dampening, amsgrad or the order of the betas: record two or more"));
  }
  NoteLostDecay(record, &out);
  if (!out.steps.empty()) CheckClipping(record, &out);
  if (!wrong.empty()) {
    for (TermFinding& finding : NameTerms(record, out.steps, out.weights, wrong)) {
      const Message unknown = finding.term.empty() ? UnknownFormula(first, out.kind) : Message();
      unknown.empty() ? out.findings.push_back(std::move(finding)) : out.unjudged.push_back(unknown);
    }
  }
  return out;
}

}  // namespace msprobe
