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
constexpr double kReproduced = 0.25;   // of the spread of log-probabilities, that forwards which differ a little leave
constexpr double kClear = 2;           // logarithm of a ratio of likelihoods that decides between two laws

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

SamplingSettings HintsOf(const RequestPairs& pairs, bool train = true, bool rollout = true) {
  SamplingSettings out;
  for (const RequestPair& pair : pairs.pairs) {
    for (const RolloutRequest* side : {rollout ? pair.rollout : nullptr, train ? pair.train : nullptr}) {
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

/// What one side recorded, beside the logits of one side.
struct FittedSide {
  std::vector<SamplingToken> tokens;
  bool own = false;  // the logits are its own
  LawFit fit;

  /// Logits of the other side leave what the forwards differ by; that must not hide which law it is.
  bool Reproduced(const std::optional<double>& told) const {
    if (own || fit.within_rounding) return fit.explains;
    if (fit.residual > kReproduced * fit.spread) return false;
    for (const SamplingLaw& other : {SamplingLaw{}, SamplingLaw{.temperature = told.value_or(1)}}) {
      if (!(other == fit.law) && PreferenceOf(fit.law, other, tokens) < kClear) return false;
    }
    return true;
  }
};

/// What a side recorded is explained by its own logits, or by those of the other where it has none.
FittedSide Fitted(const SampledTokens& sampled, const std::vector<double>& recorded, bool own,
                  const SamplingSettings& hints) {
  FittedSide out{sampled.tokens, own, {}};
  for (size_t i = 0; i < out.tokens.size(); ++i) out.tokens[i].recorded = recorded[i];
  out.fit = FitLaw(out.tokens, hints);
  return out;
}

/// Both sides were told a temperature, and the engine's own logits say that it did not divide by it: the trainer, whose
/// forward is another one, need only be nearer to what it was told.
bool IsLeftRaw(const RequestPairs& pairs, const FittedSide& train, const FittedSide& rollout) {
  const std::optional<double> a = HintsOf(pairs, true, false).temperature, b = HintsOf(pairs, false, true).temperature;
  if (!a || !b || *a != *b || *a <= 0 || std::fabs(*a - 1) <= kOtherFactor) return false;
  return rollout.own && rollout.fit.explains && rollout.fit.law.IsRaw() &&
         PreferenceOf({.temperature = *a}, {}, train.tokens) >= kClear;
}

/// The logits of one side, which is another forward, do not make what the other recorded.
void NotMade(bool trainer, RolloutStageResult* out) {
  out->verdict = RolloutVerdict::kUnsure;
  out->sentence =
      trainer ? Msg("the logits given do not make the trainer's log-probabilities, so how it made them is not known")
              : Msg("the logits given do not make the engine's log-probabilities, so how it made them is not known");
  out->next_run = trainer
                      ? Msg("record the trainer's logits, too: 'logits' in its records")
                      : Msg("record the engine's logits: a dump of its logits_processor, or 'logits' in its records");
}

/// One law fits both sides best.
void JudgeSameLaw(const RequestPairs& pairs, const FittedSide& train, const FittedSide& rollout,
                  RolloutStageResult* out) {
  const std::optional<double> told = HintsOf(pairs).temperature;
  const bool mine = train.Reproduced(told), theirs = rollout.Reproduced(told);
  if (mine && theirs) {
    out->verdict = RolloutVerdict::kAgrees;
    out->sentence = rollout.fit.law.IsRaw() ? Msg("equal") : Msg("equal, both {}", rollout.fit.law.Words());
    return;
  }
  if (!mine && theirs && IsLeftRaw(pairs, train, rollout)) {
    out->verdict = RolloutVerdict::kCause;
    out->kind = "raw";
    out->sentence = Msg(
        "the engine's log-probabilities are of the raw logits, although both sides name the temperature {:.4g}", *told);
    out->evidence.push_back(Msg("the trainer's are nearer to logits divided by {:.4g} ({:.3g} nats are left)", *told,
                                ResidualOf({.temperature = *told}, train.tokens)));
    return;
  }
  if (mine == theirs || (mine ? rollout.own : train.own)) {
    out->verdict = RolloutVerdict::kUnsure;
    out->sentence = Msg("no way of making log-probabilities explains those recorded");
    return;
  }
  NotMade(theirs, out);
}

/// Other laws fit the two sides.
void JudgeLaws(const RequestPairs& pairs, const FittedSide& train, const FittedSide& rollout,
               const SampledTokens& sampled, RolloutStageResult* out) {
  const SamplingSettings hints = HintsOf(pairs);
  const SamplingLaw &mine = train.fit.law, &theirs = rollout.fit.law;
  out->share = ShareOf(sampled, mine, theirs);
  // A forward that is wrong may look like a temperature in the other side's logits.
  constexpr double kNearly = 0.02;
  const auto told = [&](const SamplingLaw& law) {
    return law.IsRaw() || (hints.temperature && law.temperature == *hints.temperature) ||
           (law.top_k > 0 && hints.top_k && static_cast<double>(law.top_k) == *hints.top_k) ||
           (law.top_p < 1 && hints.top_p && law.top_p == *hints.top_p);
  };
  const auto sure = [&](const FittedSide& side) {
    return side.own || side.fit.residual <= kNearly || (told(side.fit.law) && side.Reproduced(hints.temperature));
  };
  if (!sure(rollout) || !sure(train)) {
    const SamplingLaw& law = sure(rollout) ? mine : theirs;
    if (law.IsRaw()) {
      out->share.reset();
      return NotMade(sure(rollout), out);
    }
    out->verdict = RolloutVerdict::kUnsure;
    out->sentence =
        Msg("{} would explain most of the gap, as other causes would: the engine's logits would tell", law.Words());
    return;
  }
  out->verdict = RolloutVerdict::kCause;
  const bool twice = hints.temperature && *hints.temperature > 0 && *hints.temperature != 1 &&
                     std::fabs(theirs.temperature - *hints.temperature * *hints.temperature) < 1e-9;
  const bool raw = theirs.IsRaw() && hints.temperature && mine == SamplingLaw{.temperature = *hints.temperature};
  out->kind = twice ? "temperature_twice" : raw ? "raw" : theirs.IsRaw() ? mine.Kind() : theirs.Kind();
  out->sentence = twice ? Msg("the engine's log-probabilities are of logits divided by the temperature {:.4g} twice",
                              *hints.temperature)
                        : Msg("the engine's log-probabilities are {}, the trainer's {}", theirs.Words(), mine.Words());
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
  const SampledTokens &for_train = trainer ? of_train : of_rollout, &for_rollout = engine ? of_rollout : of_train;
  const SamplingSettings hints = HintsOf(pairs);
  const FittedSide train = Fitted(for_train, for_train.train, trainer, hints),
                   rollout = Fitted(for_rollout, for_rollout.rollout, engine, hints);
  out.seen = engine && trainer ? Msg("logits of both sides, {} tokens", for_rollout.tokens.size())
             : engine          ? Msg("logits of the engine, {} tokens", for_rollout.tokens.size())
                               : Msg("logits of the trainer, {} tokens", for_rollout.tokens.size());
  out.figures = {{"rollout_residual", rollout.fit.residual},
                 {"rollout_raw_residual", rollout.fit.raw_residual},
                 {"train_residual", train.fit.residual},
                 {"train_raw_residual", train.fit.raw_residual}};
  out.evidence = {
      rollout.Reproduced(hints.temperature)
          ? Msg("the engine's log-probabilities are {} ({:.3g} nats are left)", rollout.fit.law.Words(),
                rollout.fit.residual)
          : Msg("the engine's log-probabilities are not those of these logits: at best {:.3g} nats are left, {}",
                rollout.fit.residual, rollout.fit.law.Words()),
      train.Reproduced(hints.temperature)
          ? Msg("the trainer's are {} ({:.3g} nats are left)", train.fit.law.Words(), train.fit.residual)
          : Msg("the trainer's are not those of these logits: at best {:.3g} nats are left, {}", train.fit.residual,
                train.fit.law.Words())};
  if (rollout.fit.law == train.fit.law) {
    JudgeSameLaw(pairs, train, rollout, &out);
  } else {
    JudgeLaws(pairs, train, rollout, for_rollout, &out);
  }
  return out;
}

}  // namespace msprobe
