#include "rollout/stages/router_moves.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

namespace msprobe {
namespace {

constexpr double kNearTie = 0.03;    // of the largest router logit: what bfloat16 activations move it by
constexpr double kUsualMoves = 8;    // the largest move of many is so many times the usual one
constexpr double kJump = 3;          // a layer that moves logits by so much more than the one below does it itself
constexpr double kLeastMove = 1e-4;  // sums in another order in float32
constexpr double kTie = 1.0 / 128;   // logits that are stored as bfloat16 tell no less apart
constexpr double kFew = 0.01;        // choices against the logits where these decide
constexpr double kFlipsOfMove = 20;  // share of choices that a move of the logits may flip, of the move

using Row = std::vector<double>;

/// The router's logits of a token in a layer; empty where they were not recorded.
Row LogitsAt(const RolloutRequest& r, int64_t position, int64_t layer) {
  if (r.router_logits.empty() || r.experts.empty()) return {};
  const auto each = static_cast<size_t>(r.expert_layers * r.expert_choices);
  const size_t rows = r.experts.size() / each * static_cast<size_t>(r.expert_layers);
  const size_t experts = r.router_logits.size() / std::max<size_t>(1, rows);
  const int64_t row = r.experts_of_response ? position - r.prompt : position;
  const size_t at = static_cast<size_t>(row * r.expert_layers + layer) * experts;
  if (row < 0 || experts == 0 || at + experts > r.router_logits.size()) return {};
  const auto begin = r.router_logits.begin() + static_cast<ptrdiff_t>(at);
  return {begin, begin + static_cast<ptrdiff_t>(experts)};
}

double SizeOf(const Row& row) {
  double most = 0;
  for (const double v : row) most = std::max(most, std::fabs(v));
  return most;
}

bool AreProbabilities(const Row& row) {
  const double sum = std::accumulate(row.begin(), row.end(), 0.0);
  return !row.empty() && std::fabs(sum - 1) < 0.02 && *std::min_element(row.begin(), row.end()) >= 0;
}

/// The largest difference of two rows, whatever is added to all of one; relative to the first.
double MoveOf(Row a, Row b) {
  if (AreProbabilities(a) != AreProbabilities(b)) {
    Row& made = AreProbabilities(a) ? a : b;
    for (double& v : made) v = std::log(std::max(v, 1e-30));
  }
  double middle = 0, most = 0;
  for (size_t i = 0; i < a.size(); ++i) middle += (b[i] - a[i]) / static_cast<double>(a.size());
  for (size_t i = 0; i < a.size(); ++i) most = std::max(most, std::fabs(b[i] - a[i] - middle));
  return most / std::max(SizeOf(a), 1e-30);
}

/// How much lower the lowest of `chosen` is than the highest of the others, of the largest logit; 0 where it is not.
double AgainstOf(const Row& row, const std::vector<int32_t>& chosen) {
  double lowest = std::numeric_limits<double>::infinity(), highest = -lowest;
  for (size_t e = 0; e < row.size(); ++e) {
    const bool in = std::find(chosen.begin(), chosen.end(), static_cast<int32_t>(e)) != chosen.end();
    if (in) {
      lowest = std::min(lowest, row[e]);
    } else {
      highest = std::max(highest, row[e]);
    }
  }
  if (!std::isfinite(lowest) || !std::isfinite(highest)) return 0;
  return std::max(0.0, highest - lowest) / std::max(SizeOf(row), 1e-30);
}

/// How much the trainer's router preferred what it chose to what the engine chose.
double MarginOf(const Row& row, const std::vector<int32_t>& own, const std::vector<int32_t>& other) {
  double lost = std::numeric_limits<double>::infinity(), won = -lost;
  const auto has = [](const std::vector<int32_t>& in, int32_t e) {
    return std::find(in.begin(), in.end(), e) != in.end();
  };
  const auto known = [&](int32_t e) { return e >= 0 && static_cast<size_t>(e) < row.size(); };
  for (const int32_t e : own) {
    if (known(e) && !has(other, e)) lost = std::min(lost, row[static_cast<size_t>(e)]);
  }
  for (const int32_t e : other) {
    if (known(e) && !has(own, e)) won = std::max(won, row[static_cast<size_t>(e)]);
  }
  return std::isfinite(lost) && std::isfinite(won) ? (lost - won) / std::max(SizeOf(row), 1e-30) : 0;
}

double MedianOf(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

void RouterMoves::Add(const RouterChoice& choice, bool flipped) {
  constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
  auto& [layer_at, first] = lowest_.try_emplace(choice.pair, choice.layer, kNone).first->second;
  int64_t& here = current_.try_emplace(choice.pair, kNone).first->second;
  if (layer_at != choice.layer) first = std::min(first, std::exchange(here, kNone)), layer_at = choice.layer;
  RouterFlip flip{choice.pair, choice.position, choice.layer, first <= choice.position, false, false, 0, 0};
  const RequestPair& pair = pairs_.pairs[choice.pair];
  const Row a = LogitsAt(*pair.train, choice.position, choice.layer),
            b = LogitsAt(*pair.rollout, choice.position, choice.layer);
  Layer& layer = layers_[choice.layer];
  const bool against_train = AgainstOf(a, choice.train) > kTie, against = AgainstOf(b, choice.rollout) > kTie;
  layer.choices += !a.empty();
  layer.against_train += against_train;
  layer.against_rollout += against;
  const bool both = !a.empty() && a.size() == b.size();
  if (both) flip.moved = MoveOf(a, b);
  if (both && !flip.follows) layer.moved.push_back(flip.moved);
  if (!flipped) return;
  here = std::min(here, choice.position);
  flip.measured = !a.empty();
  if (!a.empty()) flip.margin = MarginOf(a, choice.train, choice.rollout);
  flip.against = both && against;
  flips_.push_back(flip);
}

bool RouterMoves::LogitsDecide(const Layer& layer) const {
  return static_cast<double>(layer.against_train) <= kFew * static_cast<double>(layer.choices);
}

double RouterMoves::Allowed(int64_t layer) const {
  const auto own = layers_.find(layer);
  if (own == layers_.end() || own->second.moved.empty()) return kNearTie;
  const double usual = MedianOf(own->second.moved);
  const double below = own == layers_.begin() ? 0 : MedianOf(std::prev(own)->second.moved);
  if (usual > kNearTie && usual > kJump * below) return 0;
  return std::max(kLeastMove, kUsualMoves * usual);
}

std::vector<RouterFlip> RouterMoves::Beyond() const {
  std::vector<RouterFlip> out;
  std::map<int64_t, double> allowed;
  for (const auto& [layer, seen] : layers_) allowed[layer] = Allowed(layer);
  for (const RouterFlip& flip : flips_) {
    if (!flip.measured || !LogitsDecide(layers_.at(flip.layer))) continue;
    if (flip.against || (!flip.follows && flip.margin > allowed.at(flip.layer))) out.push_back(flip);
  }
  std::sort(out.begin(), out.end(), [](const RouterFlip& x, const RouterFlip& y) {
    return std::tie(x.layer, x.pair, x.position) < std::tie(y.layer, y.pair, y.position);
  });
  return out;
}

size_t RouterMoves::measured() const {
  return static_cast<size_t>(std::count_if(flips_.begin(), flips_.end(), [&](const RouterFlip& flip) {
    return flip.measured && LogitsDecide(layers_.at(flip.layer));
  }));
}

bool RouterMoves::recorded() const {
  return std::any_of(flips_.begin(), flips_.end(), [](const RouterFlip& flip) { return flip.measured; });
}

std::optional<OtherRule> RouterMoves::ByOtherRule() const {
  if (flips_.empty()) return std::nullopt;
  const auto lower = [](const RouterFlip& x, const RouterFlip& y) { return x.layer < y.layer; };
  const int64_t lowest = std::min_element(flips_.begin(), flips_.end(), lower)->layer;
  const auto is_there = [&](const RouterFlip& flip) { return flip.layer == lowest; };
  const Layer& layer = layers_.at(lowest);
  if (layer.moved.empty()) return std::nullopt;
  const OtherRule out{lowest,
                      layer.choices,
                      static_cast<size_t>(std::count_if(flips_.begin(), flips_.end(), is_there)),
                      layer.against_train,
                      layer.against_rollout,
                      MedianOf(layer.moved)};
  const auto choices = static_cast<double>(out.choices);
  const bool decide = static_cast<double>(std::max(out.against_train, out.against_rollout)) <= kFew * choices;
  if (decide || static_cast<double>(out.flips) <= (kFew + kFlipsOfMove * out.moved) * choices) return std::nullopt;
  return out;
}

double RouterMoves::largest_margin() const {
  double out = 0;
  for (const RouterFlip& flip : flips_) out = std::max(out, flip.margin);
  return out;
}

}  // namespace msprobe
