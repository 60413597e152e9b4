// What a module is in its model, whatever trainer or engine calls it: "layer 3, projections of q, k and v in one".
#pragma once

#include <cstdint>
#include <string_view>

namespace msprobe {

enum class ModulePart : uint8_t {
  kOther,
  kModel,  ///< contains layers
  kEmbed,
  kLayer,
  kInputNorm,
  kQkv,
  kQ,
  kK,
  kV,
  kQNorm,
  kKNorm,
  kRotary,
  kCore,  ///< attention itself, between the projections
  kAttention,
  kO,
  kMlpNorm,
  kGateUp,
  kGate,
  kUp,
  kDown,
  kRouter,
  kExperts,
  kMlp,
  kFinalNorm,
  kHead,
  kLogits,
};

struct ModuleRole {
  int64_t layer = -1;
  ModulePart part = ModulePart::kOther;
};

/// Of a path such as "model.layers.3.self_attn.q_proj", by the words by which weights are known.
ModuleRole RoleOfModule(std::string_view path);

}  // namespace msprobe
