// Stage round-off: what is left of the gap when all other stages have spoken.
#include <algorithm>
#include <cmath>

#include "rollout/stages/judge_stages.h"

namespace msprobe {
namespace {

constexpr double kFloat32 = 1e-4;  // nats that sums in another order make of float32 log-probabilities

}  // namespace

RolloutStageResult RoundOffStage(const std::vector<RolloutStageResult>& others, const std::vector<TokenGap>& gaps,
                                 const RequestsLeftOut& left_out) {
  RolloutStageResult out;
  out.stage = RolloutStage::kRoundOff;
  out.sentence = Msg("not seen");
  if (gaps.empty()) {
    out.next_run = Msg("record the log-probabilities of both sides for the same tokens: how large is the gap?");
    return out;
  }
  double most = 0, sum = 0;
  const TokenGap* worst = &gaps[0];
  for (const TokenGap& gap : gaps) {
    const double apart = std::fabs(gap.train - gap.rollout);
    sum += apart;
    if (apart <= most) continue;
    most = apart;
    worst = &gap;
  }
  out.seen = Msg("log-probabilities of {} tokens", gaps.size());
  out.figures = {{"max_gap", most}, {"mean_gap", sum / static_cast<double>(gaps.size())}};
  out.evidence.push_back(Msg("mean gap {:.3g}, largest {:.3g} nats: request {}, token {}",
                             sum / static_cast<double>(gaps.size()), most, worst->request, worst->position));
  if (left_out.requests == 1) out.not_seen.push_back(Msg("{} tokens of 1 request, whose ids differ", left_out.tokens));
  if (left_out.requests > 1)
    out.not_seen.push_back(Msg("{} tokens of {} requests, whose ids differ", left_out.tokens, left_out.requests));
  if (most == 0) {
    out.verdict = RolloutVerdict::kAgrees;
    out.sentence = Msg("no gap: the log-probabilities are bit-equal");
    return out;
  }
  const auto says = [&](RolloutStage stage, auto... verdicts) {
    return std::any_of(others.begin(), others.end(), [&](const RolloutStageResult& r) {
      return r.stage == stage && ((r.verdict == verdicts) || ...);
    });
  };
  if (most <= kFloat32) {
    out.verdict = RolloutVerdict::kRoundOff;
    out.sentence = left_out.requests == 0
                       ? Msg("no more than rounding of float32 (largest {:.3g} nats)", most)
                       : Msg("no more than rounding of float32 where the tokens agree (largest {:.3g} nats)", most);
    return out;
  }
  const bool cause = std::any_of(others.begin(), others.end(), [](const RolloutStageResult& r) {
    return r.verdict == RolloutVerdict::kCause || r.verdict == RolloutVerdict::kUnsure;
  });
  if (!cause &&
      says(RolloutStage::kOp, RolloutVerdict::kAgrees, RolloutVerdict::kRoundOff, RolloutVerdict::kLegitimate)) {
    out.verdict = RolloutVerdict::kRoundOff;
    out.sentence = Msg("what is left is rounding: every op stays within what its types allow (mean gap {:.3g} nats)",
                       sum / static_cast<double>(gaps.size()));
    return out;
  }
  out.not_seen.push_back(cause ? Msg("what the gap is without the cause above")
                               : Msg("the ops of both sides: whether the rest is rounding"));
  if (!cause)
    out.next_run =
        Msg("record a step of both sides with msprobe run, task tensor and level mix: which op differs first?");
  return out;
}

}  // namespace msprobe
