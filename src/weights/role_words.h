// The words by which models name their weights.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace msprobe {

/// What a name says, before shapes are known.
struct WeightName {
  std::string stack;  // "encoder", "decoder" or ""
  int64_t layer = -1, expert = -1;
  std::string what;     // "attention.q", "mlp.gate_up", "norm1", "embed", ...; "" where no word is known
  std::string param;    // "weight", "bias", ...
  bool shared = false;  // of the shared expert
  bool mtp = false;     // of multi-token prediction, numbered apart
  std::string rest;     // the name without what wraps all names of a model
  std::string leaf;     // the last word before the parameter: "c_attn"
  bool kernel = false;  // of TensorFlow or Flax: [in, out]
};

WeightName ParseWeightName(std::string_view name);

/// The block of a layer that a weight belongs to, "3 attention": fused or not, its parts have the same. "" where the
/// name says nothing.
std::string BlockOf(const WeightName& name);

/// A scale of an engine's attention or of its cache of keys and values, which no checkpoint of weights has:
/// "model.layers.0.self_attn.attn._k_scale".
bool IsCacheScale(std::string_view name);

}  // namespace msprobe
