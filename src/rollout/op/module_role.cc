#include "rollout/op/module_role.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/text.h"
#include "weights/role_words.h"

namespace msprobe {
namespace {

struct PartWord {
  std::string_view word;
  ModulePart part;
};
/// Of weights, as role_words.h has them.
constexpr std::array kByWeight{
    PartWord{"embed", ModulePart::kEmbed},        PartWord{"norm1", ModulePart::kInputNorm},
    PartWord{"attention.qkv", ModulePart::kQkv},  PartWord{"attention.q", ModulePart::kQ},
    PartWord{"attention.k", ModulePart::kK},      PartWord{"attention.v", ModulePart::kV},
    PartWord{"attention.o", ModulePart::kO},      PartWord{"norm2", ModulePart::kMlpNorm},
    PartWord{"mlp.gate_up", ModulePart::kGateUp}, PartWord{"mlp.gate", ModulePart::kGate},
    PartWord{"mlp.up", ModulePart::kUp},          PartWord{"mlp.down", ModulePart::kDown},
    PartWord{"mlp.router", ModulePart::kRouter},  PartWord{"final_norm", ModulePart::kFinalNorm},
    PartWord{"head", ModulePart::kHead}};
/// Of modules that need not have weights.
constexpr std::array kByName{PartWord{"q_norm", ModulePart::kQNorm},
                             PartWord{"k_norm", ModulePart::kKNorm},
                             PartWord{"q_layernorm", ModulePart::kQNorm},
                             PartWord{"k_layernorm", ModulePart::kKNorm},
                             PartWord{"rotary_emb", ModulePart::kRotary},
                             PartWord{"rotary_pos_emb", ModulePart::kRotary},
                             PartWord{"core_attention", ModulePart::kCore},
                             PartWord{"self_attn", ModulePart::kAttention},
                             PartWord{"self_attention", ModulePart::kAttention},
                             PartWord{"attention", ModulePart::kAttention},
                             PartWord{"experts", ModulePart::kExperts},
                             PartWord{"mlp", ModulePart::kMlp},
                             PartWord{"block_sparse_moe", ModulePart::kMlp},
                             PartWord{"feed_forward", ModulePart::kMlp},
                             PartWord{"logits_processor", ModulePart::kLogits}};

template <size_t N>
ModulePart PartOf(const std::array<PartWord, N>& words, std::string_view word) {
  const auto* found = std::find_if(words.begin(), words.end(), [&](const PartWord& w) { return w.word == word; });
  return found == words.end() ? ModulePart::kOther : found->part;
}

}  // namespace

ModuleRole RoleOfModule(std::string_view path) {
  const WeightName weight = ParseWeightName(std::string(path) + ".weight");
  ModuleRole role{weight.layer, ModulePart::kOther};
  const std::vector<std::string_view> words = Split(path, '.');
  const std::string_view last = words.back();
  // Parts of experts, of shared ones and of what predicts further tokens have no place in the line of a layer.
  if (weight.expert >= 0 || weight.shared || weight.mtp) return role;
  if (IsDigits(last)) {
    role.part = weight.layer >= 0 && words.size() >= 2 ? ModulePart::kLayer : ModulePart::kOther;
    return role;
  }
  role.part = PartOf(kByName, last);
  if (role.part == ModulePart::kOther && last == "attn") {
    const bool inside = std::count_if(words.begin(), words.end() - 1, [](std::string_view w) {
      return Contains(w, "attn") || Contains(w, "attention");
    });
    role.part = inside ? ModulePart::kCore : ModulePart::kAttention;
  }
  if (role.part == ModulePart::kOther) role.part = PartOf(kByWeight, weight.what);
  if (role.part == ModulePart::kOther && last == "model") role.part = ModulePart::kModel;
  return role;
}

}  // namespace msprobe
