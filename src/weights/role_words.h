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

}  // namespace msprobe
