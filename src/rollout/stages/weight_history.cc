#include "rollout/stages/weight_history.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/text.h"
#include "rollout/records/dump_weights.h"
#include "rollout/stages/head_facts.h"
#include "rollout/stages/qkv_order.h"
#include "weights/causes/weight_rows.h"
#include "weights/open_checkpoint.h"

namespace msprobe {
namespace {

bool IsSameFile(const std::string& a, const std::string& b) {
  std::error_code error;
  return a == b || (std::filesystem::equivalent(a, b, error) && !error);
}

/// The same values, also where one of the two was saved in a coarser type.
bool HoldSame(const WeightTensor& a, const WeightTensor& b) {
  if (a.dtype == b.dtype) return HaveSameBits(a, b);
  const DType type = CoarserType(a.dtype, b.dtype);
  return RowsOfWeight(a, type).all == RowsOfWeight(b, type).all;
}

/// Whether a step holds what the trainer does of all weights in which the engine differs.
bool IsOfTrainer(const HistoryStep& step, const std::vector<const WeightPair*>& others) {
  size_t same = 0;
  for (const WeightPair* pair : others) {
    const auto found = step.of_engine.find(pair->b.label());
    if (found == step.of_engine.end()) continue;
    const WeightTensor& own = step.map.pairs[found->second].a;
    if (own.shape != pair->a.shape || !HoldSame(own, pair->a)) return false;
    ++same;
  }
  return same > 0;
}

}  // namespace

bool IsCopy(WeightVerdict v) {
  return v == WeightVerdict::kBitEqual || v == WeightVerdict::kEqual || v == WeightVerdict::kRounded;
}

StatusOr<Checkpoint> OpenWeights(const SideWeights& weights) {
  return weights.dump ? OpenDumpWeights(weights.path) : OpenCheckpoint(weights.path);
}

bool HistoryStep::HasCopy(const std::string& label) const {
  const auto found = of_engine.find(label);
  return found != of_engine.end() && IsCopy(diffs[found->second].verdict);
}

StatusOr<std::deque<HistoryStep>> ReadHistory(const std::vector<SideWeights>& earlier, const SideWeights& train,
                                              const std::vector<const WeightPair*>& others, Checkpoint* engine) {
  std::deque<HistoryStep> out;
  int64_t own_step = train.step;
  for (auto source = earlier.rbegin(); source != earlier.rend(); ++source) {
    if (IsSameFile(source->path, train.path)) continue;
    HistoryStep& step = out.emplace_back();
    step.source = *source;
    step.name = source->step >= 0 ? Msg("step {}", source->step) : Message(OneLine(source->path));
    MSP_ASSIGN_OR_RETURN(step.checkpoint, OpenWeights(*source));
    InferHeads(&step.checkpoint, engine);
    MSP_ASSIGN_OR_RETURN(step.map, MatchWeights(&step.checkpoint, engine, nullptr));
    MSP_ASSIGN_OR_RETURN(step.diffs, CompareWeights(step.checkpoint, *engine, step.map.pairs));
    MSP_RETURN_IF_ERROR(TakeOtherQkvOrder(step.checkpoint, *engine, &step.map.pairs, &step.diffs).status());
    for (size_t i = 0; i < step.map.pairs.size(); ++i) step.of_engine.emplace(step.map.pairs[i].b.label(), i);
    if (!IsOfTrainer(step, others)) continue;
    if (own_step < 0) own_step = source->step;
    out.pop_back();
  }
  int64_t order = 0;
  for (HistoryStep& step : out) {
    // A number that two different ones have says nothing.
    const bool numbers = own_step >= 0 && step.source.step >= 0 && step.source.step != own_step;
    step.behind = numbers ? own_step - step.source.step : ++order;
  }
  return out;
}

}  // namespace msprobe
