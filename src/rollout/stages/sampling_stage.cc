// Stage sampling: of which logits the recorded log-probabilities are, and whether both sides make them alike.
#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "rollout/stages/judge_stages.h"
#include "rollout/stages/sampling_law.h"
#include "rollout/stages/statistics.h"

namespace msprobe {
namespace {

constexpr size_t kFewestSampled = 8;   // tokens that show a law
constexpr double kExact = 2e-3;        // nats that a relation of two lists may leave
constexpr double kOtherFactor = 0.01;  // of a factor that is none by rounding
constexpr double kRounded = 0.05;      // nats that an engine of low precision may leave beside such a relation

using Logits = std::vector<float> RolloutRequest::*;

struct SampledTokens {
  std::vector<SamplingToken> tokens;  // with what the side recorded
  std::vector<double> train, rollout;
};

/// Tokens of which both log-probabilities and the logits of one side are known.
SampledTokens TokensWith(const RequestPairs& pairs, const RolloutRequest* RequestPair::*owner, bool of_train) {
  SampledTokens out;
  for (const RequestPair& pair : pairs.pairs) {
    const RolloutRequest* side = pair.*owner;
    const PairGap gap = GapOf(pair);
    if (!side || side->vocabulary <= 1 || gap.counted.empty()) continue;
    const auto vocabulary = static_cast<size_t>(side->vocabulary);
    for (size_t i = 0; i < gap.counted.size(); ++i) {
      const size_t at = static_cast<size_t>(side->prompt) + i;
      if (!gap.counted[i] || at >= side->tokens.size() || (i + 1) * vocabulary > side->logits.size()) continue;
      const int64_t token = side->tokens[at];
      if (token < 0 || token >= side->vocabulary) continue;
      out.tokens.push_back({std::span(side->logits).subspan(i * vocabulary, vocabulary), token,
                            of_train ? gap.train[i] : gap.rollout[i]});
      out.train.push_back(gap.train[i]);
      out.rollout.push_back(gap.rollout[i]);
    }
  }
  return out;
}

SamplingSettings HintsOf(const RequestPairs& pairs) {
  SamplingSettings out;
  for (const RequestPair& pair : pairs.pairs) {
    for (const RolloutRequest* side : {pair.rollout, pair.train}) {
      if (!side) continue;
      if (!out.temperature) out.temperature = side->sampling.temperature;
      if (!out.top_p) out.top_p = side->sampling.top_p;
      if (!out.top_k) out.top_k = side->sampling.top_k;
      if (!out.min_p) out.min_p = side->sampling.min_p;
    }
    if (out.temperature) break;
  }
  return out;
}

/// How much of the KL goes when the engine's values are made as the trainer's are.
double ShareOf(const SampledTokens& sampled, const SamplingLaw& train, const SamplingLaw& rollout) {
  double before = 0, behind = 0;
  for (size_t i = 0; i < sampled.tokens.size(); ++i) {
    const SamplingToken& t = sampled.tokens[i];
    const double moved = LogProbability(rollout, t.logits, t.token) - LogProbability(train, t.logits, t.token);
    before += K3({{}, 0, sampled.train[i], sampled.rollout[i]});
    behind += K3({{}, 0, sampled.train[i], sampled.rollout[i] - (std::isfinite(moved) ? moved : 0)});
  }
  return before > 0 ? std::clamp(1 - behind / before, 0.0, 1.0) : 0;
}

/// Relations that two lists of log-probabilities show without logits.
void JudgeLists(const RequestPairs& pairs, RolloutStageResult* out) {
  std::vector<double> train, rollout;
  for (const RequestPair& pair : pairs.pairs) {
    const PairGap gap = GapOf(pair);
    for (size_t i = 0; i < gap.counted.size(); ++i) {
      if (!gap.counted[i]) continue;
      train.push_back(gap.train[i]);
      rollout.push_back(gap.rollout[i]);
    }
  }
  out->not_seen.push_back(
      Msg("logits of either side: without them a temperature, top-p and top-k cannot be told from other causes"));
  out->next_run = Msg("record the engine's logits: a dump of its logits_processor, or 'logits' in its records");
  out->sentence = Msg("not seen");
  if (train.empty()) return;
  out->seen = Msg("log-probabilities of both sides, {} tokens", train.size());
  if (MeanDistance(train, rollout) == 0) {
    out->verdict = RolloutVerdict::kAgrees;
    out->sentence = Msg("equal (no gap)");
    out->not_seen.clear();
    return;
  }
  if (train.size() < kFewestSampled) return;
  double tr = 0, tt = 0, offset = 0;
  for (size_t i = 0; i < train.size(); ++i) {
    tr += train[i] * rollout[i];
    tt += train[i] * train[i];
    offset += (rollout[i] - train[i]) / static_cast<double>(train.size());
  }
  const double factor = tt > 0 ? tr / tt : 1;
  std::vector<double> scaled(train), moved(train);
  for (double& v : scaled) v *= factor;
  for (double& v : moved) v += offset;
  const double gap = RootMeanSquare(train, rollout);
  // What low precision leaves is small beside a division, unlike what other laws of sampling leave.
  const double left = RootMeanSquare(scaled, rollout);
  const bool exact = std::fabs(factor - 1) > kOtherFactor && left < std::min(kExact, gap / 10);
  const bool rounded = std::fabs(factor - 1) > 5 * kOtherFactor && left < std::min(kRounded, gap / 15);
  if (factor > 0 && (exact || rounded)) {
    out->verdict = RolloutVerdict::kCause;
    out->kind = "divided_after";
    // A temperature of training is usually below 1; what was told decides.
    const double told = HintsOf(pairs).temperature.value_or(std::min(factor, 1 / factor));
    const bool engine = std::fabs(told * factor - 1) < std::fabs(told / factor - 1);
    out->sentence = engine ? Msg("the engine's log-probabilities are the trainer's divided by {:.3g}", 1 / factor)
                           : Msg("the trainer's log-probabilities are the engine's divided by {:.3g}", factor);
    out->share = 1;
  } else if (std::fabs(offset) > 5 * kExact && RootMeanSquare(moved, rollout) < std::min(kExact, gap / 10)) {
    out->verdict = RolloutVerdict::kCause;
    out->kind = "offset";
    out->sentence = Msg("the engine's log-probabilities are the trainer's and {:.4g}", offset);
    out->share = 1;
  }
}

}  // namespace

RolloutStageResult SamplingStage(const RequestPairs& pairs) {
  RolloutStageResult out;
  out.stage = RolloutStage::kSampling;
  const SampledTokens of_train = TokensWith(pairs, &RequestPair::train, true);
  SampledTokens of_rollout = TokensWith(pairs, &RequestPair::rollout, false);
  const bool engine = of_rollout.tokens.size() >= kFewestSampled, trainer = of_train.tokens.size() >= kFewestSampled;
  if (!engine && !trainer) {
    JudgeLists(pairs, &out);
    return out;
  }
  // What a side recorded is explained by its own logits, or by those of the other where it has none.
  const auto with = [](const SampledTokens& sampled, const std::vector<double>& recorded) {
    std::vector<SamplingToken> tokens = sampled.tokens;
    for (size_t i = 0; i < tokens.size(); ++i) tokens[i].recorded = recorded[i];
    return tokens;
  };
  const SampledTokens &for_train = trainer ? of_train : of_rollout, &for_rollout = engine ? of_rollout : of_train;
  const SamplingSettings hints = HintsOf(pairs);
  const LawFit train = FitLaw(with(for_train, for_train.train), hints);
  const LawFit rollout = FitLaw(with(for_rollout, for_rollout.rollout), hints);
  out.seen = engine && trainer ? Msg("logits of both sides, {} tokens", for_rollout.tokens.size())
             : engine          ? Msg("logits of the engine, {} tokens", for_rollout.tokens.size())
                               : Msg("logits of the trainer, {} tokens", for_rollout.tokens.size());
  out.figures = {{"rollout_residual", rollout.residual},
                 {"rollout_raw_residual", rollout.raw_residual},
                 {"train_residual", train.residual},
                 {"train_raw_residual", train.raw_residual}};
  out.evidence = {
      Msg("the engine's log-probabilities are {} ({:.3g} nats are left)", rollout.law.Words(), rollout.residual),
      Msg("the trainer's are {} ({:.3g} nats are left)", train.law.Words(), train.residual)};
  if (rollout.law == train.law) {
    // Logits of the other side leave what the forwards differ by.
    const bool own = (!engine || rollout.explains) && (!trainer || train.explains);
    if (!own) {
      out.sentence = Msg("no way of making log-probabilities explains those recorded");
      out.verdict = RolloutVerdict::kUnsure;
      return out;
    }
    out.verdict = RolloutVerdict::kAgrees;
    out.sentence = rollout.law.IsRaw() ? Msg("equal") : Msg("equal, both {}", rollout.law.Words());
    return out;
  }
  out.share = ShareOf(for_rollout, train.law, rollout.law);
  // A forward that is wrong may look like a temperature in the other side's logits.
  constexpr double kNearly = 0.02;
  const auto told = [&](const SamplingLaw& law) {
    return law.IsRaw() || (hints.temperature && law.temperature == *hints.temperature) ||
           (law.top_k > 0 && hints.top_k && static_cast<double>(law.top_k) == *hints.top_k) ||
           (law.top_p < 1 && hints.top_p && law.top_p == *hints.top_p);
  };
  const auto sure = [&](const LawFit& fit, bool own) { return own || fit.residual <= kNearly || told(fit.law); };
  if (!sure(rollout, engine) || !sure(train, trainer)) {
    out.verdict = RolloutVerdict::kUnsure;
    out.sentence = Msg("{} would explain most of the gap, as other causes would: the engine's logits would tell",
                       sure(rollout, engine) ? train.law.Words() : rollout.law.Words());
    return out;
  }
  out.verdict = RolloutVerdict::kCause;
  const bool twice = hints.temperature && *hints.temperature > 0 && *hints.temperature != 1 &&
                     std::fabs(rollout.law.temperature - *hints.temperature * *hints.temperature) < 1e-9;
  out.kind = twice ? "temperature_twice" : rollout.law.IsRaw() ? train.law.Kind() : rollout.law.Kind();
  out.sentence =
      twice ? Msg("the engine's log-probabilities are of logits divided by the temperature {:.4g} twice",
                  *hints.temperature)
            : Msg("the engine's log-probabilities are {}, the trainer's {}", rollout.law.Words(), train.law.Words());
  return out;
}

}  // namespace msprobe
