#include "weights/megatron_names.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace msprobe {

std::string McoreName(std::string name, bool two_stacks) {
  // In this order: each applies to what the ones before it left.
  constexpr std::array<std::pair<std::string_view, std::string_view>, 13> kRules{{
      {"self_attention.linear_qkv.layer_norm_", "input_layernorm."},
      {"mlp.linear_fc1.layer_norm_", "pre_mlp_layernorm."},  // Transformer Engine, in layers without experts
      {"language_model.", ""},
      {"encoder", "decoder"},
      {".input_norm.", ".input_layernorm."},
      {"query_key_value", "linear_qkv"},
      {".dense.", ".linear_proj."},
      {"post_attention_norm", "pre_mlp_layernorm"},
      {"dense_h_to_4h", "linear_fc1"},
      {"dense_4h_to_h", "linear_fc2"},
      {"mlp.local_experts", "mlp.experts.local_experts"},
      {"final_norm", "final_layernorm"},
      {"word_embeddings_for_head", "output_layer"},
  }};
  for (const auto& [from, to] : kRules) {
    if (two_stacks && from == "encoder") continue;
    for (size_t at = 0; (at = name.find(from, at)) != std::string::npos; at += to.size())
      name.replace(at, from.size(), to);
  }
  return name;
}

bool HasTwoStacks(const std::vector<WeightTensor>& tensors) {
  const auto any = [&](std::string_view stack) {
    return std::any_of(tensors.begin(), tensors.end(),
                       [&](const WeightTensor& t) { return t.name.find(stack) != std::string::npos; });
  };
  return any("encoder.layers.") && any("decoder.layers.");
}

TensorSplit SplitOf(const std::string& name) {
  const auto has = [&](std::string_view part) { return name.find(part) != std::string::npos; };
  constexpr std::array<std::string_view, 9> kRows{"eh_proj.",
                                                  "linear_qkv.",
                                                  "linear_fc1.",
                                                  "word_embeddings.weight",
                                                  "output_layer.weight",
                                                  "linear_q_up_proj.",
                                                  "linear_kv_up_proj.",
                                                  "linear_q.",
                                                  "linear_kv."};
  if (has("layer_norm")) return TensorSplit::kCopies;
  if (std::any_of(kRows.begin(), kRows.end(), has)) return TensorSplit::kRows;
  return has("linear_fc2.weight") || has("linear_proj.weight") ? TensorSplit::kColumns : TensorSplit::kCopies;
}

}  // namespace msprobe
