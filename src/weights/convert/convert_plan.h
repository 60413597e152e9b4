// What a converted checkpoint will hold, before a byte of it is written.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "weights/convert/out_weight.h"
#include "weights/map_file.h"

namespace msprobe {

/// Whose names the weights get.
enum class NamesOf : uint8_t {
  kSame,
  kMindSpore,     ///< of MindSpore's layers: gamma and beta of norms, embedding_table, moving_mean
  kTorch,         ///< the way back
  kMindFormers,   ///< of LLaMA, and of models built like it, in MindFormers
  kTransformers,  ///< the same in transformers
};

struct ConvertPlan {
  std::vector<OutWeight> weights;
  std::vector<std::pair<std::string, std::string>> names;  // from, to
  std::vector<std::string> left_out;
  std::vector<Message> notes;

  /// As it lies in the input but for its name.
  void Take(const WeightTensor& t, std::string name);
};

/// kSame, kMindSpore, kTorch: tensor by tensor. Pairs of `map` hold first, and what it lists under only_a is left out.
Status PlanByLayers(const Checkpoint& from, NamesOf names, const MapFile* map, ConvertPlan* plan);
/// kMindFormers, kTransformers: by what a weight is, so fused weights come apart and centred norms get their 1.
/// kBadInput for models that are not built like LLaMA.
Status PlanByRoles(const Checkpoint& from, NamesOf names, ConvertPlan* plan);
/// The names and the layout of another checkpoint, whose values do not matter: each of its weights must have a partner
/// whose name says so, or that `map` names.
Status PlanLike(Checkpoint* from, Checkpoint* like, const MapFile* map, ConvertPlan* plan);

}  // namespace msprobe
