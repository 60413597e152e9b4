// The values that a model computes one after the other, as either side recorded them: parts of what is one module there
// are taken out, what is kept apart there is added.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "rollout/op/token_rows.h"

namespace msprobe {

/// In the order in which a layer computes them.
enum class LinePoint : uint8_t {
  kEmbed,
  kInputResidual,  ///< what the layer is given
  kInputNorm,
  kQ,
  kK,
  kV,
  kQNorm,  ///< of each head, in models that have it
  kKNorm,
  kQRotary,  ///< what attention is given
  kKRotary,
  kCore,  ///< what attention makes of them
  kO,
  kMlpResidual,  ///< what the layer was given and attention, added
  kMlpNorm,
  kRouter,
  kGate,
  kUp,
  kActivation,  ///< of gate, times up
  kMlp,
  kFinalResidual,
  kFinalNorm,
  kLogits,
};
inline constexpr size_t kLinePoints = static_cast<size_t>(LinePoint::kLogits) + 1;

struct PointPlace {
  int64_t layer = -1;
  LinePoint point = LinePoint::kEmbed;
  bool operator==(const PointPlace&) const = default;
};

/// All points of a model with so many layers, in order.
std::vector<PointPlace> PointsOf(int64_t layers);

/// Widths of parts that lie in one tensor; 0 where nothing says them.
struct PartWidths {
  int64_t q = 0, k = 0, v = 0, gate = 0;
};

/// A module's parameters of one name, those of several modules below each other.
struct PointParameter {
  std::vector<double> values;
  std::vector<int64_t> shape;
  bool empty() const { return values.empty(); }
};

class ModelLine {
 public:
  /// `shards`: the other ranks, which hold further parts of the same tensors.
  explicit ModelLine(const SideOps& side, const std::vector<const SideOps*>& shards = {}) : side_(side) {
    for (const SideOps* shard : shards) shards_.emplace_back(*shard);
  }

  const SideOps& side() const { return side_; }
  /// Of a layer, as far as its own modules or what attention is given say.
  PartWidths WidthsOf(int64_t layer) const;
  void set_widths(const PartWidths& widths);
  const PartWidths& widths() const { return widths_; }

  /// The values of tokens at a place; empty where the dump does not have them.
  RowMatrix Read(PointPlace place, const std::vector<TokenRow>& tokens) const;
  /// Whether the values are made from what is recorded, for the tool knows how.
  bool Derives(PointPlace place) const;
  /// "weight" or "bias" of the module that makes the values.
  PointParameter Parameter(PointPlace place, std::string_view name) const;
  /// "model.layers.3.self_attn.o_proj": the module that makes the values; "" if none is recorded.
  std::string ModuleOf(PointPlace place) const;

  /// cos and sin of the trainer's rotary embedding in a layer, for tokens: both [tokens, size of a head].
  std::array<RowMatrix, 2> Angles(int64_t layer, const std::vector<TokenRow>& tokens) const;
  /// The size of a head; 0 where nothing says it.
  int64_t HeadSize() const;

 private:
  RowMatrix ReadOwn(PointPlace place, const std::vector<TokenRow>& tokens) const;
  RowMatrix ReadItem(const ModuleRole& role, ItemState state, size_t nth, const std::vector<TokenRow>& tokens) const;
  RowMatrix ReadHeads(const ModuleRole& role, const std::vector<TokenRow>& tokens) const;
  RowMatrix ReadSum(const ModuleRole& role, const std::vector<TokenRow>& tokens) const;
  RowMatrix ReadPart(const ModuleRole& own, const ModuleRole& fused, int64_t begin, int64_t width,
                     const std::vector<TokenRow>& tokens) const;
  RowMatrix ReadRotary(int64_t layer, size_t nth, const std::vector<TokenRow>& tokens) const;
  RowMatrix ReadAttentionArgument(int64_t layer, size_t nth, const std::vector<TokenRow>& tokens) const;
  RowMatrix Rotated(int64_t layer, size_t nth, const std::vector<TokenRow>& tokens) const;
  RowMatrix ReadProjected(int64_t layer, size_t nth, const std::vector<TokenRow>& tokens) const;
  int64_t WidthOf(const ModuleRole& role, ItemState state, size_t nth) const;

  const SideOps& side_;
  PartWidths widths_;  // of what this rank has
  std::vector<ModelLine> shards_;
};

/// x turned by the angles as halves of a head: for values of one token.
void TurnHalves(const float* cos, const float* sin, size_t size, float* values, size_t width);

}  // namespace msprobe
