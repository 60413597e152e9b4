// Stage weight: an engine's weights are a copy of the trainer's, or what they are instead.
#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/text.h"
#include "rollout/records/find_evidence.h"
#include "rollout/stages/head_facts.h"
#include "rollout/stages/judge_stages.h"
#include "rollout/stages/qkv_order.h"
#include "rollout/stages/weight_explain.h"
#include "rollout/stages/weight_history.h"
#include "rollout/stages/weight_kinds.h"
#include "weights/name_map.h"
#include "weights/role_words.h"
#include "weights/weight_diff.h"

namespace msprobe {
namespace {

constexpr size_t kMostEvidence = 12;
constexpr double kSmall = 0.05;     // relative difference of weights some updates apart
constexpr double kNearlyAll = 0.8;  // of the weights

Message Lag(int64_t behind) {
  if (behind < 0) return Msg("{} updates ahead of the trainer's", -behind);
  return behind == 1 ? Msg("1 update behind") : Msg("{} updates behind", behind);
}

/// A pair that is no copy, and why.
struct OtherWeight {
  size_t pair = 0;
  WeightCause cause;
};

class WeightJudge {
 public:
  explicit WeightJudge(const WeightQuestion& question) : question_(question) {}

  StatusOr<RolloutStageResult> Judge() {
    out_.stage = RolloutStage::kWeight;
    if (question_.train.empty() || question_.rollout.empty()) return NotSeen();
    ChooseSides();
    MSP_ASSIGN_OR_RETURN(a_, OpenWeights(train_));
    MSP_ASSIGN_OR_RETURN(b_, OpenWeights(rollout_));
    const bool guessed = InferHeads(&a_, &b_);
    MSP_ASSIGN_OR_RETURN(map_, MatchWeights(&a_, &b_, nullptr));
    if (guessed) a_.facts.heads = a_.facts.groups = a_.facts.head_dim = 0;
    MSP_ASSIGN_OR_RETURN(diffs_, CompareWeights(a_, b_, map_.pairs));
    MSP_ASSIGN_OR_RETURN(const size_t reordered, TakeOtherQkvOrder(a_, b_, &map_.pairs, &diffs_));
    out_.seen = Msg("{} pairs of weights", map_.pairs.size());
    out_.evidence.push_back(Msg("of {} and {}", OneLine(train_.path), OneLine(rollout_.path)));
    if (reordered > 0) out_.evidence.push_back(Msg("q, k and v lie in another order in {} fused weights", reordered));
    if (map_.pairs.empty()) {
      out_.sentence = Msg("no weight of one side has a partner on the other");
      out_.verdict = RolloutVerdict::kUnsure;
      return out_;
    }
    LookAtOneSided();
    for (size_t i = 0; i < diffs_.size(); ++i) {
      if (IsAbsent(map_.pairs[i].a) || IsAbsent(map_.pairs[i].b)) {
        absent_.push_back(map_.pairs[i].a.label());
      } else if (map_.pairs[i].by >= MatchedBy::kStatistics) {
        // Names say nothing of these, so equal values may be those of an exchanged weight.
        ++guessed_;
        if (IsCopy(diffs_[i].verdict)) continue;
        lacking_[0].push_back(map_.pairs[i].a.label());
        lacking_[1].push_back(map_.pairs[i].b.label());
      } else if (IsCopy(diffs_[i].verdict)) {
        ++copies_;
        rounded_ += diffs_[i].verdict != WeightVerdict::kBitEqual;
      } else if (IsFewBits(map_.pairs[i].b.dtype) && IsFloating(map_.pairs[i].a.dtype)) {
        ++quantised_;
      } else if (!map_.pairs[i].same_shape && IsShard(map_.pairs[i].a.shape, map_.pairs[i].b.shape)) {
        ++shards_;
      } else {
        others_.push_back({i, {}});
      }
    }
    out_.figures = {{"pairs", static_cast<double>(map_.pairs.size())},
                    {"copies", static_cast<double>(copies_)},
                    {"rounded", static_cast<double>(rounded_)},
                    {"different", static_cast<double>(others_.size())},
                    {"absent", static_cast<double>(absent_.size())}};
    if (!others_.empty()) {
      MSP_RETURN_IF_ERROR(LookBack());
      ExplainAll();
    }
    Conclude();
    return out_;
  }

 private:
  StatusOr<RolloutStageResult> NotSeen() {
    out_.sentence = Msg("not seen");
    out_.next_run =
        Msg("save the weights of both sides behind the same synchronisation: the trainer's checkpoint, and in the "
            "engine's process torch.save(model.state_dict(), FILE)");
    return out_;
  }

  void ChooseSides() {
    rollout_ = question_.rollout.back();
    size_t at = question_.train.size() - 1;
    for (size_t i = 0; i < question_.train.size(); ++i) {
      if (rollout_.step >= 0 && question_.train[i].step == rollout_.step) at = i;
    }
    train_ = question_.train[at];
    earlier_.assign(question_.train.begin(), question_.train.begin() + static_cast<ptrdiff_t>(at));
    earlier_.insert(earlier_.end(), question_.history.begin(), question_.history.end());
    std::stable_sort(earlier_.begin(), earlier_.end(),
                     [](const SideWeights& x, const SideWeights& y) { return x.step < y.step; });
  }

  void LookAtOneSided() {
    size_t lora = 0, packed = 0, scales = 0;
    for (const auto* side : {&map_.only_a, &map_.only_b}) {
      const std::set<std::string> absent = AbsentBlocks(side == &map_.only_a ? map_.only_b : map_.only_a);
      for (const WeightTensor& tensor : *side) {
        if (IsAbsent(tensor) || IsComputed(tensor.name)) continue;
        if (IsLora(tensor.name)) {
          ++lora;
          lora_.emplace(tensor.name, &tensor);
        } else if (IsScale(tensor.name)) {
          packed += IsPackedWeight(tensor.name);
          ++scales;
        } else if (absent.contains(BlockOf(ParseWeightName(tensor.name)))) {
          absent_.push_back(tensor.label());
        } else if (!LookAtHead(tensor, side == &map_.only_b)) {
          lacking_[side == &map_.only_b].push_back(tensor.label());
        }
      }
    }
    quantised_ = packed;
    scales_ = scales - packed;
    lora_weights_ = lora;
  }

  /// Blocks of layers of which a side has a weight without its values: one that is fused, whose parts no pair has.
  static std::set<std::string> AbsentBlocks(const std::vector<WeightTensor>& tensors) {
    std::set<std::string> out;
    for (const WeightTensor& tensor : tensors) {
      const std::string block = BlockOf(ParseWeightName(tensor.name));
      if (IsAbsent(tensor) && !block.empty()) out.insert(block);
    }
    return out;
  }

  /// An output head of one side, where the other has only the table of words that it is tied to. True where that says
  /// what it is.
  bool LookAtHead(const WeightTensor& head, bool of_engine) {
    if (ParseWeightName(head.name).what != "head") return false;
    if ((of_engine ? train_ : rollout_).dump) return false;  // it has the weights of modules that were called
    for (const WeightPair& pair : map_.pairs) {
      if (ParseWeightName(pair.a.name).what != "embed" || pair.a.shape != head.shape) continue;
      const DType type = CoarserType(pair.a.dtype, CoarserType(pair.b.dtype, head.dtype));
      const uint64_t own = RowsOfWeight(head, type).all;
      if (own == RowsOfWeight(of_engine ? pair.b : pair.a, type).all ||
          own == RowsOfWeight(of_engine ? pair.a : pair.b, type).all) {
        ++tied_;
        return true;
      }
      heads_.push_back({head, pair.a, of_engine});
      return true;
    }
    return false;
  }

  Status LookBack() {
    if (earlier_.empty()) earlier_ = FindStepsBeside(train_);
    std::vector<const WeightPair*> others;
    for (const OtherWeight& other : others_) others.push_back(&map_.pairs[other.pair]);
    MSP_ASSIGN_OR_RETURN(history_, ReadHistory(earlier_, train_, others, &b_));
    return OkStatus();
  }

  int64_t HeadDim() const {
    const ModelFacts& facts = a_.facts;
    if (facts.head_dim > 0) return facts.head_dim;
    return facts.heads > 0 && facts.hidden > 0 ? facts.hidden / facts.heads : 0;
  }

  /// Labels of the trainer's weights by what they hold, of the shapes that are asked for.
  void ReadContents() {
    std::set<std::vector<int64_t>> shapes;
    for (const OtherWeight& other : others_) shapes.insert(map_.pairs[other.pair].b.shape);
    for (const WeightPair& pair : map_.pairs) {
      if (!shapes.contains(pair.a.shape) || !pair.same_shape) continue;
      contents_.emplace(std::pair{pair.b.dtype, RowsOfWeight(pair.a, CoarserType(pair.a.dtype, pair.b.dtype)).all},
                        pair.a.label());
    }
  }

  WeightCause Explain(const WeightPair& pair, const WeightDiff& diff) {
    for (const HistoryStep& step : history_) {
      if (!step.HasCopy(pair.b.label())) continue;
      stale_[step.source.path].push_back(pair.a.label());
      const bool tied = IsTiedApart(pair) || ParseWeightName(pair.b.name).what == "head";
      return {tied ? "stale_head" : "stale", Msg("it is that of {}", step.name)};
    }
    const auto lora = [&](std::string_view which) -> const WeightTensor* {
      std::string stem = pair.a.name.substr(0, pair.a.name.rfind('.'));
      if (EndsWith(stem, ".base_layer")) stem.resize(stem.size() - std::string_view(".base_layer").size());
      for (const auto& [name, tensor] : lora_) {
        if (StartsWith(name, stem + ".") && Contains(name, which)) return tensor;
      }
      return nullptr;
    };
    if (const WeightTensor* down = lora("lora_A"), *up = lora("lora_B"); down && up && IsMerged(pair, *down, *up))
      return {"merged", Msg("the adapter is merged into it")};
    if (pair.same_shape) {
      const uint64_t own = RowsOfWeight(pair.b, CoarserType(pair.a.dtype, pair.b.dtype)).all;
      const auto found = contents_.find({pair.b.dtype, own});
      if (found != contents_.end() && found->second != pair.a.label())
        return {"other_weight", Msg("it holds what is {} of the trainer", found->second)};
    }
    if (WeightCause alone = ExplainAlone(pair, diff, HeadDim()); !alone.kind.empty()) return alone;
    for (const HistoryStep& step : history_) {
      const auto found = step.of_engine.find(pair.b.label());
      if (found == step.of_engine.end()) continue;
      WeightCause part = ExplainPart(pair, a_.facts, &step.map.pairs[found->second].a, step.name);
      if (part.kind == "part_stale") return part;
    }
    // Elements of a vector may be equal by rounding; whole rows are not.
    if (pair.a.shape.size() >= 2) {
      if (WeightCause part = ExplainPart(pair, a_.facts, nullptr, {}); !part.kind.empty()) return part;
    }
    if (LooksQuantised(pair.b) && !LooksQuantised(pair.a))
      return {"quantised", Msg("its values lie on the levels of a quantised type")};
    return {};
  }

  /// Of a weight that the trainer has once and the engine twice: whether the engine's other one is a copy.
  bool IsTiedApart(const WeightPair& pair) const {
    bool tied = pair.by == MatchedBy::kTied, copy = false;
    for (size_t i = 0; i < map_.pairs.size(); ++i) {
      if (map_.pairs[i].a.label() != pair.a.label() || map_.pairs[i].b.label() == pair.b.label()) continue;
      tied |= map_.pairs[i].by == MatchedBy::kTied;
      copy |= IsCopy(diffs_[i].verdict);
    }
    return tied && copy;
  }

  void ExplainAll() {
    ReadContents();
    for (OtherWeight& other : others_) {
      const WeightPair& pair = map_.pairs[other.pair];
      other.cause = Explain(pair, diffs_[other.pair]);
      if (other.cause.kind.empty() && IsTiedApart(pair))
        other.cause = {"tied_head", Msg("it is tied, and was not updated with the engine's other copy")};
    }
    // From step to step the rows that had no gradient, of words and experts, stay what they are: where most weights
    // differ as a whole, these are no parts that were transferred.
    if (2 * Count("") <= map_.pairs.size()) return;
    for (OtherWeight& other : others_) {
      if (other.cause.kind == "part") other.cause = {};
    }
  }

  size_t Count(std::string_view kind) const {
    return static_cast<size_t>(
        std::count_if(others_.begin(), others_.end(), [&](const OtherWeight& o) { return o.cause.kind == kind; }));
  }

  const OtherWeight* First(std::string_view kind) const {
    const auto found =
        std::find_if(others_.begin(), others_.end(), [&](const OtherWeight& o) { return o.cause.kind == kind; });
    return found == others_.end() ? nullptr : &*found;
  }

  /// As the trainer calls it; what is tied has one name there, so as the engine does.
  std::string LabelOf(const WeightPair& pair) const { return IsTiedApart(pair) ? pair.b.label() : pair.a.label(); }

  void Lead(std::string kind, Message sentence, const OtherWeight* at, RolloutVerdict verdict) {
    if (out_.verdict != RolloutVerdict::kNotSeen) {
      out_.also.push_back(std::move(sentence));
      return;
    }
    out_.verdict = verdict;
    out_.kind = std::move(kind);
    out_.sentence = std::move(sentence);
    if (at) {
      const WeightPair& pair = map_.pairs[at->pair];
      out_.place.parameter = LabelOf(pair);
      if (pair.a.label() != pair.b.label())
        out_.evidence.push_back(Msg("{} of the trainer is {} of the engine", pair.a.label(), pair.b.label()));
    }
  }

  /// Weights that are those of an earlier step: all that changed since, or a part of them.
  void ConcludeStale() {
    const size_t stale = Count("stale") + Count("stale_head");
    if (stale == 0) return;
    const HistoryStep* newest = nullptr;
    for (const HistoryStep& step : history_) {
      if (!newest && stale_.contains(step.source.path)) newest = &step;
    }
    const OtherWeight* at = First("stale") ? First("stale") : First("stale_head");
    if (!newest || !at) return;
    size_t fresh = 0;  // copies of the trainer's that differ from that step
    for (size_t i = 0; i < diffs_.size(); ++i) {
      if (IsCopy(diffs_[i].verdict))
        fresh += newest->of_engine.contains(map_.pairs[i].b.label()) && !newest->HasCopy(map_.pairs[i].b.label());
    }
    const size_t total = map_.pairs.size();
    const std::string name = LabelOf(map_.pairs[at->pair]);
    if (fresh == 0 && stale == others_.size() && stale_.size() == 1) {
      const bool allowed = newest->behind >= 0 && newest->behind <= question_.allowed_lag;
      out_.figures.emplace_back("behind", static_cast<double>(newest->behind));
      Lead("stale",
           Msg("the engine has the weights of {}, {} ({} of {} differ since)", newest->name, Lag(newest->behind), stale,
               total),
           nullptr, allowed ? RolloutVerdict::kLegitimate : RolloutVerdict::kCause);
    } else if (Count("stale") == 0) {
      Lead("tied_head", Msg("{} is that of {}: the tied head was not updated with its table", name, newest->name), at,
           RolloutVerdict::kCause);
    } else {
      Lead("partial",
           stale == 1 ? Msg("1 of {} weights was not transferred, {}: it is that of {}", total, name, newest->name)
                      : Msg("{} of {} weights were not transferred, the first is {}: they are those of {}", stale,
                            total, name, newest->name),
           at, RolloutVerdict::kCause);
    }
  }

  void ConcludeKind(std::string_view kind, RolloutVerdict verdict) {
    const OtherWeight* at = First(kind);
    if (!at) return;
    const size_t count = Count(kind);
    const std::string name = LabelOf(map_.pairs[at->pair]);
    Lead(std::string(kind),
         count == 1 ? Msg("{}: {}", name, at->cause.sentence)
                    : Msg("{}: {} ({} weights alike)", name, at->cause.sentence, count),
         at, verdict);
  }

  /// What nothing explains.
  void ConcludeRest() {
    const OtherWeight* at = First("");
    if (!at) return;
    size_t small = 0, count = Count("");
    for (const OtherWeight& other : others_) small += other.cause.kind.empty() && diffs_[other.pair].error < kSmall;
    const auto there = [](const WeightPair& pair) { return !IsAbsent(pair.a) && !IsAbsent(pair.b); };
    const auto all = static_cast<double>(std::count_if(map_.pairs.begin(), map_.pairs.end(), there));
    const std::string& name = map_.pairs[at->pair].a.label();
    if (small == count &&
        static_cast<double>(count) >= kNearlyAll * (all - static_cast<double>(others_.size() - count))) {
      const RolloutVerdict verdict = question_.allowed_lag > 0 ? RolloutVerdict::kUnsure : RolloutVerdict::kCause;
      Lead("another_step",
           Msg("{} of {} weights differ a little, as those of another step do", count, map_.pairs.size()), nullptr,
           verdict);
      out_.next_run = Msg("give the checkpoints of earlier steps with --history: which of them does the engine have?");
    } else {
      Lead("differs",
           Msg("{} differs by {:.3g} (relative), {} of {} weights do", name, diffs_[at->pair].error, count,
               map_.pairs.size()),
           at, RolloutVerdict::kCause);
      if (history_.empty())
        out_.next_run =
            Msg("give the checkpoints of earlier steps with --history: which of them does the engine have?");
    }
  }

  /// Nothing may pass that was not looked at, as where all that is there is as it should be.
  void ConcludeAbsent() {
    if (absent_.empty()) return;
    const Message says =
        absent_.size() == 1
            ? Msg("the values of {} are not there: a side has it without elements", OneLine(absent_[0]))
            : Msg("the values of {} weights are not there, such as those of {}: a side has them without elements",
                  absent_.size(), OneLine(absent_[0]));
    if (out_.verdict == RolloutVerdict::kLegitimate) {
      out_.also.push_back(out_.sentence);
      out_.verdict = RolloutVerdict::kNotSeen;
    }
    Lead("absent", says, nullptr, RolloutVerdict::kUnsure);
    out_.not_seen.push_back(Msg("{} weights without values", absent_.size()));
    if (out_.next_run.empty()) {
      out_.next_run = Msg(
          "save weights that are whole: gather the shards of FSDP or ZeRO-3 first, and take those of an engine on a "
          "CPU before it packs them");
    }
  }

  /// What has no partner by its name was not compared: where that is so on both sides, they may be the same weights.
  void ConcludeUnpaired() {
    const std::vector<std::string>&a = lacking_[0], &b = lacking_[1];
    if (!a.empty() && !b.empty()) {
      Lead("unpaired",
           Msg("{} weights are copies, and {} of the trainer and {} of the engine have no partner by name, such as {} "
               "and {}",
               copies_, a.size(), b.size(), OneLine(a[0]), OneLine(b[0])),
           nullptr, RolloutVerdict::kUnsure);
    } else if (!a.empty() || !b.empty()) {
      const std::vector<std::string>& one = a.empty() ? b : a;
      out_.not_seen.push_back(one.size() == 1
                                  ? Msg("a weight that one side alone has: {}", OneLine(one[0]))
                                  : Msg("{} weights that one side alone has, such as {}", one.size(), OneLine(one[0])));
    }
    if (guessed_ > 0)
      out_.not_seen.push_back(Msg("whether any of {} weights whose names say nothing are exchanged", guessed_));
  }

  void ConcludeHeads() {
    for (const UntiedHead& head : heads_) {
      Lead("tied_head",
           head.of_engine ? Msg("the engine's {} is not the trainer's {} that it is tied to", head.head.label(),
                                head.table.label())
                          : Msg("the trainer has {} of its own, the engine uses {} in its place", head.head.label(),
                                head.table.label()),
           nullptr, RolloutVerdict::kCause);
      if (out_.place.parameter.empty()) out_.place.parameter = head.head.label();
    }
  }

  void Conclude() {
    for (const std::string_view kind :
         {"other_weight", "exchanged_rows", "exchanged_columns", "part_stale", "zeros", "not_numbers", "scaled"})
      ConcludeKind(kind, RolloutVerdict::kCause);
    ConcludeStale();
    ConcludeKind("tied_head", RolloutVerdict::kCause);
    ConcludeHeads();
    for (const std::string_view kind : {"part", "shape"}) ConcludeKind(kind, RolloutVerdict::kCause);
    ConcludeRest();
    ConcludeAbsent();
    ConcludeKind("quantised", RolloutVerdict::kLegitimate);
    if (const OtherWeight* at = First("merged")) {
      Lead("merged", Msg("adapters merged into {} weights, such as {}", Count("merged"), LabelOf(map_.pairs[at->pair])),
           at, RolloutVerdict::kLegitimate);
    }
    for (size_t i = 0; i < others_.size() && i < kMostEvidence; ++i) {
      const size_t pair = others_[i].pair;
      out_.evidence.push_back(EvidenceOf(LabelOf(map_.pairs[pair]), map_.pairs[pair], diffs_[pair], others_[i].cause));
    }
    // Scales without weights of few bits: who stores them in a way that is not known here.
    if (quantised_ == 0) quantised_ = scales_;
    if (quantised_ > 0) {
      Lead("quantised", Msg("the engine is quantised: {} weights are stored in a few bits", quantised_), nullptr,
           RolloutVerdict::kLegitimate);
      out_.not_seen.push_back(Msg("the values of {} quantised weights", quantised_));
    }
    if (shards_ > 0) {
      Lead("shards", Msg("{} weights are shards of the other side's: give those of all ranks", shards_), nullptr,
           RolloutVerdict::kUnsure);
    }
    ConcludeUnpaired();
    if (out_.verdict == RolloutVerdict::kNotSeen) {
      out_.verdict = RolloutVerdict::kAgrees;
      out_.sentence = rounded_ == 0 ? Msg("bit-equal ({})", copies_)
                                    : Msg("equal up to the rounding of the type of storage ({})", copies_);
    }
    if (lora_weights_ > 0 && Count("merged") == 0)
      Lead(
          "adapters",
          Msg("{} tensors of adapters are on one side only: the other serves them apart, or not at all", lora_weights_),
          nullptr, RolloutVerdict::kUnsure);
  }

  struct UntiedHead {
    WeightTensor head, table;
    bool of_engine = false;
  };

  const WeightQuestion& question_;
  RolloutStageResult out_;
  SideWeights train_, rollout_;
  std::vector<SideWeights> earlier_;
  Checkpoint a_, b_;
  NameMap map_;
  std::vector<WeightDiff> diffs_;
  std::vector<OtherWeight> others_;
  std::deque<HistoryStep> history_;                        // the newest first
  std::map<std::string, std::vector<std::string>> stale_;  // step -> labels
  std::map<std::pair<DType, uint64_t>, std::string> contents_;
  std::map<std::string, const WeightTensor*> lora_;
  std::vector<UntiedHead> heads_;
  std::array<std::vector<std::string>, 2> lacking_;  // labels of each side
  std::vector<std::string> absent_;                  // labels of weights whose values a side does not have
  size_t guessed_ = 0;
  size_t copies_ = 0, rounded_ = 0, quantised_ = 0, scales_ = 0, lora_weights_ = 0, tied_ = 0, shards_ = 0;
};

}  // namespace

StatusOr<RolloutStageResult> WeightStage(const WeightQuestion& question) { return WeightJudge(question).Judge(); }

}  // namespace msprobe
