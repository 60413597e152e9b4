// Whether a token's other experts follow from what rounding, or an earlier choice, moved its router by.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "rollout/gap.h"

namespace msprobe {

struct RouterFlip {
  size_t pair = 0;
  int64_t position = 0, layer = 0;
  bool follows = false;   // a lower layer sent this token, or one that it attends to, to other experts
  bool measured = false;  // the router's logits are there
  bool against = false;   // the engine's choice is not what its own logits say
  double margin = 0;      // what the trainer preferred its experts by, of its largest logit
  double moved = 0;       // what its logits differ by between the sides; of the trainer's largest
};

/// A token in a layer, and the experts that both sides chose.
struct RouterChoice {
  size_t pair = 0;
  int64_t position = 0, layer = 0;
  const std::vector<int32_t>&train, &rollout;
};

/// A layer in which both sides have the same logits of the router and choose other experts.
struct OtherRule {
  int64_t layer = 0;
  size_t choices = 0, flips = 0;
  size_t against_train = 0, against_rollout = 0;  // choices that do not follow from the logits alone
  double moved = 0;                               // what the logits usually differ by; of the largest
};

class RouterMoves {
 public:
  explicit RouterMoves(const RequestPairs& pairs) : pairs_(pairs) {}

  /// Layer by layer from the lowest, in each all tokens of a pair in their order.
  void Add(const RouterChoice& choice, bool flipped);
  /// The flips that neither rounding nor an earlier flip explains: those of the lowest layer first.
  std::vector<RouterFlip> Beyond() const;

  /// The lowest layer with flips, where the logits move too little for them and do not decide alone.
  std::optional<OtherRule> ByOtherRule() const;

  const std::vector<RouterFlip>& flips() const { return flips_; }
  size_t measured() const;
  /// Whether logits were there at any flip, whatever they say.
  bool recorded() const;
  double largest_margin() const;

 private:
  struct Layer {
    std::vector<double> moved;  // of tokens that no flip came before
    size_t choices = 0, against_train = 0, against_rollout = 0;
  };
  bool LogitsDecide(const Layer& layer) const;
  /// What rounding moves the logits of a layer by; 0 where the layer itself moves them.
  double Allowed(int64_t layer) const;

  const RequestPairs& pairs_;
  std::vector<RouterFlip> flips_;
  std::map<int64_t, Layer> layers_;
  std::map<size_t, std::pair<int64_t, int64_t>> lowest_;  // pair -> the first token that a lower layer flips, ...
  std::map<size_t, int64_t> current_;                     // ... and of the layer at hand
};

}  // namespace msprobe
