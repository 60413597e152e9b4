#include "rollout/locator/locate.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "base/file.h"
#include "base/message.h"
#include "rollout/op/dump_logits.h"
#include "rollout/op/op_stage.h"
#include "rollout/records/dump_weights.h"
#include "rollout/records/find_evidence.h"
#include "rollout/stages/judge_stages.h"

namespace msprobe {
namespace {

constexpr double kLiesOnFlips = 0.5;  // share of the gap on flipped tokens that makes them the cause

/// Records of one file on both sides were written once: they say nothing of the other side's ids.
bool AreSameFiles(const RolloutRecords& a, const RolloutRecords& b) {
  const auto files = [](const RolloutRecords& records) {
    std::set<std::string> out;
    for (const RolloutRequest& request : records.requests) {
      std::error_code error;
      const auto real = std::filesystem::canonical(request.file, error);
      out.insert(error ? request.file : real.string());
    }
    return out;
  };
  return files(a) == files(b);
}

RolloutStageResult* ResultOf(std::vector<RolloutStageResult>* results, RolloutStage stage) {
  return &*std::find_if(results->begin(), results->end(),
                        [&](const RolloutStageResult& r) { return r.stage == stage; });
}

bool Holds(RolloutVerdict v) { return v == RolloutVerdict::kAgrees || v == RolloutVerdict::kLegitimate; }

/// What the answers of several stages say together.
void Settle(std::vector<RolloutStageResult>* results) {
  const RolloutStageResult& weight = *ResultOf(results, RolloutStage::kWeight);
  RolloutStageResult& sampling = *ResultOf(results, RolloutStage::kSampling);
  RolloutStageResult& routing = *ResultOf(results, RolloutStage::kRouting);
  RolloutStageResult& rest = *ResultOf(results, RolloutStage::kRoundOff);
  const RolloutStageResult& op = *ResultOf(results, RolloutStage::kOp);
  // The ops say what moved the routers: rounding, or a cause of their own. What a router chooses is none of them.
  const bool by_logits = routing.kind == "flips" || routing.kind == "near_ties";
  const bool rounds = op.verdict == RolloutVerdict::kRoundOff || op.verdict == RolloutVerdict::kAgrees;
  const bool open = routing.verdict == RolloutVerdict::kUnsure || routing.verdict == RolloutVerdict::kCause;
  if (by_logits && open && rounds) {
    routing.verdict = RolloutVerdict::kRoundOff;
    routing.kind = "near_ties";
    routing.evidence.push_back(Msg("no op of the layers adds more than rounding, so rounding moved the routers"));
  } else if (by_logits && routing.verdict == RolloutVerdict::kCause && op.verdict == RolloutVerdict::kCause) {
    routing.verdict = RolloutVerdict::kUnsure;
    routing.evidence.push_back(Msg("an op of the layers differs, which moves the routers behind it"));
  } else if (routing.verdict == RolloutVerdict::kUnsure && Holds(weight.verdict) &&
             routing.share.value_or(0) >= kLiesOnFlips) {
    routing.evidence.push_back(
        Msg("the weights are equal and most of the gap lies on these tokens: replay the engine's experts in the "
            "trainer"));
  }
  if (weight.verdict == RolloutVerdict::kCause && sampling.verdict == RolloutVerdict::kCause &&
      sampling.kind == "temperature" && sampling.share.value_or(0) < 1) {
    sampling.verdict = RolloutVerdict::kUnsure;
  }
  const bool asked =
      weight.verdict == RolloutVerdict::kLegitimate && (weight.kind == "quantised" || weight.kind == "stale");
  const bool cause = std::any_of(results->begin(), results->end(),
                                 [](const RolloutStageResult& r) { return r.verdict == RolloutVerdict::kCause; });
  if (asked && !cause && rest.verdict == RolloutVerdict::kNotSeen && !rest.seen.empty()) {
    rest.verdict = RolloutVerdict::kLegitimate;
    rest.sentence = Msg("a gap is expected: {}", weight.sentence);
    rest.next_run = {};
  }
}

}  // namespace

StatusOr<RolloutReport> LocateRollout(const RolloutOptions& options) {
  RolloutReport out;
  MSP_ASSIGN_OR_RETURN(out.train, FindSideEvidence(options.train, RolloutSide::kTrain));
  MSP_ASSIGN_OR_RETURN(out.rollout, FindSideEvidence(options.rollout, RolloutSide::kRollout));
  MSP_ASSIGN_OR_RETURN(const std::vector<SideWeights> history, FindWeights(options.history));
  if (!options.output.empty()) MSP_RETURN_IF_ERROR(MakeOutputDir(options.output));
  if (out.train.records && out.rollout.records && AreSameFiles(*out.train.records, *out.rollout.records))
    out.rollout.records.reset();
  MSP_RETURN_IF_ERROR(TakeDumpLogits(RolloutSide::kTrain, &out.train));
  MSP_RETURN_IF_ERROR(TakeDumpLogits(RolloutSide::kRollout, &out.rollout));
  const RequestPairs pairs = PairRequests(out.train.records, out.rollout.records);
  out.gaps = GapsOf(pairs);
  out.kl = MeanK3(out.gaps);
  out.left_out = LeftOutOf(pairs);
  out.results.push_back(TokenStage(out.train, out.rollout, pairs));
  const auto weights = [](const SideEvidence& side) {
    return side.weights.empty() ? FindDumpWeights(side) : side.weights;
  };
  MSP_ASSIGN_OR_RETURN(RolloutStageResult weight,
                       WeightStage({weights(out.train), weights(out.rollout), history, options.allowed_lag}));
  out.results.push_back(std::move(weight));
  out.results.push_back(SamplingStage(pairs));
  out.results.push_back(RoutingStage(pairs));
  MSP_ASSIGN_OR_RETURN(RolloutStageResult op, OpStage(out.train, out.rollout));
  out.results.push_back(std::move(op));
  out.results.push_back(RoundOffStage(out.results, out.gaps, out.left_out));
  Settle(&out.results);
  if (!options.output.empty()) MSP_RETURN_IF_ERROR(WriteRolloutFiles(options.output, &out));
  return out;
}

}  // namespace msprobe
