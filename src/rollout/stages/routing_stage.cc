// Stage routing: tokens whose experts differ, by how little the router preferred them, and how much of the gap lies on
// them.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "rollout/stages/judge_stages.h"
#include "rollout/stages/router_moves.h"

namespace msprobe {
namespace {

constexpr double kBeyondShare = 0.01;  // of the flips that may lie beyond
constexpr double kNothingAlike = 0.5;  // flips of all choices that no rounding makes
constexpr double kSteady = 0.9;        // of the choices of an expert that go to one other

class RoutingJudge {
 public:
  explicit RoutingJudge(const RequestPairs& pairs) : pairs_(pairs), moves_(pairs) {}

  RolloutStageResult Judge() {
    RolloutStageResult out;
    out.stage = RolloutStage::kRouting;
    for (size_t p = 0; p < pairs_.pairs.size(); ++p) LookAt(p);
    if (other_choices_) {
      out.verdict = RolloutVerdict::kCause;
      out.kind = "choices";
      out.seen = Msg("experts of both sides");
      out.sentence = Msg("the trainer sends a token to {} experts of a layer, the engine to {}", other_choices_->first,
                         other_choices_->second);
      return out;
    }
    if (compared_ == 0) {
      out.sentence = Msg("not seen");
      out.next_run =
          Msg("record the experts of each token on both sides: routed_experts in the engine's response and the "
              "trainer's batch");
      return out;
    }
    out.seen = Msg("the experts of {} tokens in {} layers", tokens_, layers_);
    out.figures = {{"tokens", static_cast<double>(tokens_)},
                   {"flipped_tokens", static_cast<double>(flipped_tokens_)},
                   {"choices", static_cast<double>(compared_)},
                   {"flips", static_cast<double>(flips_)}};
    if (flips_ == 0) {
      out.verdict = RolloutVerdict::kAgrees;
      out.sentence = Msg("equal ({} tokens, {} layers)", tokens_, layers_);
      return out;
    }
    Conclude(&out);
    return out;
  }

 private:
  /// The experts of a token in a layer; empty where they were not recorded.
  static std::vector<int32_t> ChoicesAt(const RolloutRequest& r, int64_t position, int64_t layer) {
    const int64_t row = r.experts_of_response ? position - r.prompt : position;
    const int64_t each = r.expert_layers * r.expert_choices, at = row * each + layer * r.expert_choices;
    if (row < 0 || at + r.expert_choices > static_cast<int64_t>(r.experts.size())) return {};
    return {r.experts.begin() + at, r.experts.begin() + at + r.expert_choices};
  }

  void LookAt(size_t index) {
    const RequestPair& pair = pairs_.pairs[index];
    if (!pair.train || !pair.rollout || pair.train->experts.empty() || pair.rollout->experts.empty()) return;
    const RolloutRequest &a = *pair.train, &b = *pair.rollout;
    if (a.tokens != b.tokens || a.expert_layers != b.expert_layers) return;
    if (a.expert_choices != b.expert_choices) {
      other_choices_.emplace(a.expert_choices, b.expert_choices);
      return;
    }
    layers_ = a.expert_layers;
    std::set<int64_t> flipped, seen;
    for (int64_t layer = 0; layer < layers_; ++layer) {
      for (int64_t position = 0; position < static_cast<int64_t>(a.tokens.size()); ++position) {
        const std::vector<int32_t> x = ChoicesAt(a, position, layer), y = ChoicesAt(b, position, layer);
        if (x.empty() || y.empty() || x[0] < 0 || y[0] < 0) continue;
        seen.insert(position);
        ++compared_;
        for (size_t i = 0; i < x.size(); ++i) ++went_[{layer, x[i]}][y[i]];
        const bool flips = std::set(x.begin(), x.end()) != std::set(y.begin(), y.end());
        moves_.Add({index, position, layer, x, y}, flips);
        if (!flips) continue;
        ++flips_;
        ++by_layer_[layer];
        flipped.insert(position);
      }
    }
    tokens_ += seen.size();
    flipped_tokens_ += flipped.size();
    AddGap(pair, flipped);
  }

  /// The probability of a token comes from the token before it.
  void AddGap(const RequestPair& pair, const std::set<int64_t>& flipped) {
    const PairGap gap = GapOf(pair);
    for (size_t i = 0; i < gap.counted.size(); ++i) {
      if (!gap.counted[i]) continue;
      const double k3 = K3({{}, 0, gap.train[i], gap.rollout[i]});
      const bool on = flipped.contains(pair.either().prompt + static_cast<int64_t>(i) - 1);
      (on ? gap_on_ : gap_off_) += k3;
      ++(on ? tokens_on_ : tokens_off_);
    }
  }

  /// Whether the experts of a layer were only renamed: "experts 0 and 3 are exchanged".
  std::optional<std::pair<int64_t, Message>> Renamed() const {
    std::map<int64_t, std::vector<std::pair<int32_t, int32_t>>> moved;
    std::map<int64_t, bool> steady;
    for (const auto& [from, to] : went_) {
      size_t all = 0, most = 0;
      int32_t target = 0;
      for (const auto& [expert, count] : to) {
        all += count;
        if (count <= most) continue;
        most = count;
        target = expert;
      }
      steady.emplace(from.first, true).first->second &= static_cast<double>(most) >= kSteady * static_cast<double>(all);
      if (target != from.second) moved[from.first].emplace_back(from.second, target);
    }
    for (const auto& [layer, pairs] : moved) {
      if (!steady.at(layer)) continue;
      return std::pair{
          layer, Msg("the experts of layer {} have other numbers: {} of the trainer is {} of the engine ({} moved)",
                     layer, pairs[0].first, pairs[0].second, pairs.size())};
    }
    return std::nullopt;
  }

  /// The first token of the lowest layer: those above follow.
  void SetPlace(const std::vector<RouterFlip>& beyond, RolloutStageResult* out) const {
    const std::vector<RouterFlip>& all = beyond.empty() ? moves_.flips() : beyond;
    const RouterFlip& at = *std::min_element(all.begin(), all.end(), [](const RouterFlip& x, const RouterFlip& y) {
      return std::tie(x.layer, x.pair, x.position) < std::tie(y.layer, y.pair, y.position);
    });
    out->place = {
        RequestName(pairs_.pairs[at.pair].either(), at.pair), at.position, "layers." + std::to_string(at.layer), {}};
  }

  void Conclude(RolloutStageResult* out) {
    const std::vector<RouterFlip> beyond = moves_.Beyond();
    const size_t measured = moves_.measured();
    SetPlace(beyond, out);
    if (gap_on_ + gap_off_ > 0) out->share = gap_on_ / (gap_on_ + gap_off_);
    size_t worst = 0;
    int64_t layer = 0;
    for (const auto& [l, count] : by_layer_) {
      if (count <= worst) continue;
      worst = count;
      layer = l;
    }
    out->evidence.push_back(
        Msg("{} of {} tokens have other experts, most in layer {} ({})", flipped_tokens_, tokens_, layer, worst));
    if (tokens_on_ > 0 && tokens_off_ > 0) {
      out->evidence.push_back(Msg("mean k3 on these tokens {:.3g}, on the others {:.3g}",
                                  gap_on_ / static_cast<double>(tokens_on_),
                                  gap_off_ / static_cast<double>(tokens_off_)));
    }
    if (measured > 0) {
      out->figures.emplace_back("largest_margin", moves_.largest_margin());
      out->evidence.push_back(
          Msg("the router preferred its experts by up to {:.3g} of its largest logit", moves_.largest_margin()));
    } else if (!moves_.recorded()) {
      out->not_seen.push_back(Msg("the router's logits: they would tell near ties from faults"));
    } else {
      out->not_seen.push_back(
          Msg("what the routers choose by beside their logits, such as a correction bias or groups of experts"));
    }
    const auto flips = static_cast<double>(flips_);
    if (const auto renamed = Renamed()) {
      out->verdict = RolloutVerdict::kCause;
      out->kind = "experts_renamed";
      out->place = {{}, -1, "layers." + std::to_string(renamed->first), {}};
      out->sentence = renamed->second;
    } else if (static_cast<double>(beyond.size()) > kBeyondShare * flips && beyond.size() > 1) {
      const auto against = std::count_if(beyond.begin(), beyond.end(), [](const RouterFlip& f) { return f.against; });
      out->verdict = RolloutVerdict::kCause;
      out->kind = 2 * static_cast<size_t>(against) > beyond.size() ? "selection" : "flips";
      out->sentence =
          out->kind == "selection"
              ? Msg("{} of {} tokens have other experts, {} choices of the engine are not what its own logits say",
                    flipped_tokens_, tokens_, against)
              : Msg("{} of {} tokens have other experts, {} choices of them beyond what rounding moves the router by",
                    flipped_tokens_, tokens_, beyond.size());
    } else if (const auto rule = moves_.ByOtherRule()) {
      out->verdict = RolloutVerdict::kCause;
      out->kind = "selection";
      out->place.module = "layers." + std::to_string(rule->layer);
      out->sentence =
          Msg("{} of {} choices of experts differ where the routers' logits differ by {:.2g}: the sides choose by "
              "other rules, as with a correction bias or groups of experts on one side",
              rule->flips, rule->choices, rule->moved);
      out->evidence.push_back(
          Msg("choices that do not follow from the router's logits alone: {} of the trainer, {} of the engine",
              rule->against_train, rule->against_rollout));
    } else if (flips > kNothingAlike * static_cast<double>(compared_)) {
      out->verdict = RolloutVerdict::kCause;
      out->kind = "unlike";
      out->sentence = Msg("{} of {} choices of experts differ: the routers do not decide alike", flips_, compared_);
    } else {
      out->verdict = measured > 0 ? RolloutVerdict::kRoundOff : RolloutVerdict::kUnsure;
      out->kind = "near_ties";
      out->sentence =
          measured > 0 ? Msg("{} of {} tokens have other experts, by near ties of the router", flipped_tokens_, tokens_)
                       : Msg("{} of {} tokens have other experts", flipped_tokens_, tokens_);
    }
  }

  const RequestPairs& pairs_;
  std::optional<std::pair<int64_t, int64_t>> other_choices_;
  std::map<std::pair<int64_t, int32_t>, std::map<int32_t, size_t>> went_;  // (layer, expert) -> expert -> times
  std::map<int64_t, size_t> by_layer_;
  RouterMoves moves_;
  int64_t layers_ = 0;
  size_t compared_ = 0, tokens_ = 0, flips_ = 0, flipped_tokens_ = 0;
  double gap_on_ = 0, gap_off_ = 0;
  size_t tokens_on_ = 0, tokens_off_ = 0;
};

}  // namespace

RolloutStageResult RoutingStage(const RequestPairs& pairs) { return RoutingJudge(pairs).Judge(); }

}  // namespace msprobe
