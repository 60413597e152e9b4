#include "rollout/op/op_stage.h"

#include <array>
#include <set>

#include "rollout/op/line_walk.h"

namespace msprobe {
namespace {

using Point = LinePoint;

constexpr std::array<std::string_view, kLinePoints> kPointWords{"embedding",
                                                                "residual behind the MLP",
                                                                "input norm",
                                                                "q projection",
                                                                "k projection",
                                                                "v projection",
                                                                "q norm",
                                                                "k norm",
                                                                "rotary embedding",
                                                                "rotary embedding",
                                                                "attention",
                                                                "output projection",
                                                                "residual behind attention",
                                                                "norm ahead of the MLP",
                                                                "router",
                                                                "gate projection",
                                                                "up projection",
                                                                "activation",
                                                                "MLP",
                                                                "residual behind the MLP",
                                                                "final norm",
                                                                "head"};

/// "layers.3 attention": the same for every trainer and engine.
std::string PlaceText(PointPlace place, int64_t layers) {
  const std::string_view words = kPointWords[static_cast<size_t>(place.point)];
  int64_t layer = place.layer;
  // What a layer is given is what the one before it ends with.
  if (place.point == Point::kInputResidual) layer -= 1;
  if (place.point == Point::kFinalResidual) layer = layers - 1;
  return layer < 0 ? std::string(words) : fmt::format("layers.{} {}", layer, words);
}

Message NextRun() {
  return Msg(
      "record one batch on both sides with task tensor at level L0: the trainer's forward of the same tokens, and the "
      "engine with start(model, scheduled_tokens=..., rows=...)");
}

RolloutStageResult NotSeen(Message why) {
  RolloutStageResult out;
  out.stage = RolloutStage::kOp;
  out.verdict = RolloutVerdict::kNotSeen;
  out.not_seen.push_back(std::move(why));
  out.next_run = NextRun();
  return out;
}

Message WhyNoTokens(const TokenPairs& pairs) {
  if (!pairs.seen_train) return Msg("the trainer's dump has no values of an embedding's ids");
  if (!pairs.seen_rollout) return Msg("the engine's dump has no values of an embedding's ids");
  if (pairs.steps == 0) return Msg("whose rows the engine's tokens are is not known in any of {} steps", pairs.refused);
  if (pairs.ambiguous > 0) return Msg("several sequences of the trainer have the engine's tokens");
  return Msg("no sequence of the trainer has the tokens of a request of the engine");
}

void AddBudget(const LineFindings& found, RolloutStageResult* out) {
  for (const PointDifference& point : found.points) {
    const bool ends = point.place.point == Point::kInputResidual || point.place.point == Point::kFinalResidual;
    if (!ends || (point.place.point == Point::kInputResidual && point.place.layer == 0)) continue;
    const int64_t layer = point.place.point == Point::kFinalResidual ? found.layers - 1 : point.place.layer - 1;
    out->figures.emplace_back(fmt::format("layers.{}", layer), point.error);
  }
  for (const PointDifference& point : found.points) {
    if (point.place.point == Point::kLogits) out->figures.emplace_back("head", point.error);
  }
  if (out->figures.empty()) return;
  std::string text;
  const size_t step = std::max<size_t>(1, out->figures.size() / 6);
  for (size_t i = 0; i < out->figures.size(); i += step) {
    text += fmt::format("{}{} {:.2g}", text.empty() ? "" : ", ", out->figures[i].first, out->figures[i].second);
  }
  out->evidence.push_back(Msg("relative difference behind each layer: {}", text));
}

void AddSeen(const LineFindings& found, const TokenPairs& pairs, RolloutStageResult* out) {
  std::set<uint32_t> sequences;
  for (const PairedToken& token : pairs.tokens) sequences.insert(token.sequence);
  out->seen = Msg("{} places of the model in {} layers, {} tokens of {} requests in {} steps", found.points.size(),
                  found.layers, found.tokens, sequences.size(), pairs.steps);
  if (pairs.refused > 0) {
    out->not_seen.push_back(Msg("{} steps of the engine whose rows are not known", pairs.refused));
  }
  if (pairs.unmatched > 0) {
    out->not_seen.push_back(Msg("{} requests that no sequence of the trainer has", pairs.unmatched));
  }
  std::set<std::string> unseen;
  for (const PointPlace& place : found.unseen)
    unseen.insert(std::string(kPointWords[static_cast<size_t>(place.point)]));
  if (!unseen.empty()) {
    out->not_seen.push_back(Msg("one side alone recorded: {}", fmt::format("{}", fmt::join(unseen, ", "))));
  }
  if (found.head) {
    out->also.push_back(Msg("the head's logits are {} in the trainer and {} in the engine",
                            DTypeName(found.head->first), DTypeName(found.head->second)));
  }
  if (found.flipped > 0) {
    out->also.push_back(
        Msg("from layer {} on tokens go to other experts where routers differ by rounding; {} of {} tokens, these and "
            "what follows them, were not judged further",
            found.flipped_layer, found.flipped, found.tokens));
  }
}

void AddFault(const LineFindings& found, const TokenPairs& pairs, RolloutStageResult* out) {
  const LineFault& fault = *found.fault;
  const PointDifference& d = fault.difference;
  const std::string place = PlaceText(d.place, found.layers);
  out->place.module = place;
  out->place.request = pairs.names[fault.sequence];
  out->place.position = fault.position;
  const std::string& module = fault.module.empty() ? place : fault.module;
  const double explained = fault.own > 0 ? std::clamp(1 - fault.how.left / fault.own, 0.0, 1.0) : 1;
  out->evidence.insert(
      out->evidence.begin(),
      d.error > d.floor
          ? Msg("{}: what it is given differs by {:.2g}, what it makes by {:.2g}; rounding explains {:.2g}", module,
                d.before, d.error, d.floor)
          : Msg("{}: what it is given differs by {:.2g}, what it makes by {:.2g}; rounding may make as much, but the "
                "eps explains {:.0f} % of it, in all rows alike",
                module, d.before, d.error, 100 * explained));
  if (fault.weights) {
    out->verdict = RolloutVerdict::kNotSeen;
    out->sentence = Msg("the first difference is in {}, whose weights differ", place);
    out->not_seen.insert(out->not_seen.begin(),
                         Msg("operations, for the weights of {} are not the same on both sides", place));
    return;
  }
  out->verdict = RolloutVerdict::kCause;
  out->kind = fault.how.found() ? fault.how.kind : "op";
  const bool undone = fault.how.found() && fault.how.undone;
  if (fault.how.found() && !undone) {
    out->sentence = fault.how.words;
  } else if (undone) {
    out->sentence = Msg("{} (explains {:.0f} % of its difference)", fault.how.words, explained * 100);
  } else {
    out->sentence = Msg("given the same, it makes something else");
  }
  out->figures.emplace_back("explained", undone ? explained : 0);
  out->figures.emplace_back("error", d.error);
  out->figures.emplace_back("input_error", d.before);
  out->share = fault.share;
  if (!fault.share) out->not_seen.push_back(Msg("how much of the gap between log-probabilities this makes"));
}

/// The ranks of one side.
std::vector<int> RanksOf(const SideEvidence& side) {
  std::set<int> ranks;
  for (const SideDump& dump : side.dumps) ranks.insert(dump.rank);
  return {ranks.begin(), ranks.end()};
}

/// Ranks that compute the same rows hold parts of the same tensors.
bool HaveSameRows(const SideOps& a, const SideOps& b) {
  bool told = false;
  for (uint32_t dump = 0; dump < a.dumps(); ++dump) {
    if (dump >= b.dumps() || a.file(dump).schedule() != b.file(dump).schedule()) return false;
    told |= !a.file(dump).schedule().empty();
  }
  return told && a.dumps() == b.dumps();
}

}  // namespace

StatusOr<RolloutStageResult> OpStage(const SideEvidence& train, const SideEvidence& rollout) {
  if (train.dumps.empty()) return NotSeen(Msg("there is no dump of the trainer"));
  if (rollout.dumps.empty()) return NotSeen(Msg("there is no dump of the engine"));
  const std::vector<int> train_ranks = RanksOf(train), ranks = RanksOf(rollout);
  MSP_ASSIGN_OR_RETURN(const SideOps train_ops, SideOps::Open(train.dumps, train_ranks[0]));
  MSP_ASSIGN_OR_RETURN(const SideOps rollout_ops, SideOps::Open(rollout.dumps, ranks[0]));
  std::vector<SideOps> others;
  for (size_t i = 1; i < ranks.size(); ++i) {
    MSP_ASSIGN_OR_RETURN(SideOps other, SideOps::Open(rollout.dumps, ranks[i]));
    if (!HaveSameRows(rollout_ops, other)) break;
    others.push_back(std::move(other));
  }
  std::vector<const SideOps*> shards;
  for (const SideOps& other : others) shards.push_back(&other);
  const TokenPairs pairs = PairTokens(train_ops, rollout_ops);
  if (pairs.tokens.empty()) return NotSeen(WhyNoTokens(pairs));
  const LineFindings found = WalkLine(train_ops, rollout_ops, pairs, shards);
  if (found.points.empty()) return NotSeen(Msg("no place of the model has values on both sides"));
  RolloutStageResult out;
  out.stage = RolloutStage::kOp;
  AddSeen(found, pairs, &out);
  if (train_ranks.size() > 1) out.not_seen.push_back(Msg("ranks of the trainer but rank {}", train_ranks[0]));
  if (shards.size() + 1 < ranks.size()) {
    out.not_seen.push_back(Msg("ranks of the engine but rank {}, which have other rows", ranks[0]));
  }
  AddBudget(found, &out);
  if (found.fault) {
    AddFault(found, pairs, &out);
    return out;
  }
  double largest = 0;
  const PointDifference* worst = &found.points[0];
  for (const PointDifference& point : found.points) {
    if (!point.other_cut && point.error > largest) largest = point.error, worst = &point;
  }
  out.verdict = largest == 0 ? RolloutVerdict::kAgrees : RolloutVerdict::kRoundOff;
  out.sentence = largest == 0 ? Msg("equal in all of {} places", found.points.size())
                              : Msg("no operation adds more than rounding; the largest difference is {:.2g}, in {}",
                                    largest, PlaceText(worst->place, found.layers));
  return out;
}

}  // namespace msprobe
