#include "match/fused_plan.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

#include "base/text.h"
#include "ops/op_name.h"

namespace msprobe {
namespace {

using NamePair = std::pair<std::string_view, std::string_view>;
constexpr std::array<NamePair, 5> kFsdpNames{{{"q_proj", "qkv_proj"},
                                              {"k_proj", "qkv_proj"},
                                              {"v_proj", "qkv_proj"},
                                              {"gate_proj", "gate_up_proj"},
                                              {"up_proj", "gate_up_proj"}}};
constexpr std::array<NamePair, 10> kMegatronNames{{{"word_embeddings", "embed_tokens"},
                                                   {"self_attention", "self_attn"},
                                                   {"linear_qkv", "qkv_proj"},
                                                   {"q_layernorm", "q_norm"},
                                                   {"k_layernorm", "k_norm"},
                                                   {"core_attention", "attn"},
                                                   {"linear_proj", "o_proj"},
                                                   {"router", "gate"},
                                                   {"linear_fc1", "gate_up_proj"},
                                                   {"linear_fc2", "down_proj"}}};

template <size_t N>
std::string_view Renamed(const std::array<NamePair, N>& names, std::string_view name) {
  for (const auto& [training, inference] : names) {
    if (training == name) return inference;
  }
  return name;
}

/// Number and end of "layers.<n>." at `at`, or false.
bool LayerAt(std::string_view name, size_t at, std::string_view* number, size_t* end) {
  constexpr std::string_view kLayers = "layers.";
  if (name.substr(at, kLayers.size()) != kLayers) return false;
  size_t stop = at + kLayers.size();
  while (stop < name.size() && name[stop] >= '0' && name[stop] <= '9') ++stop;
  *number = name.substr(at + kLayers.size(), stop - at - kLayers.size());
  *end = stop;
  return !number->empty();
}

/// The number of the first layer in the name; "-" without.
std::string_view LayerOf(std::string_view name) {
  std::string_view number;
  size_t end = 0;
  for (size_t at = name.find("layers."); at != std::string_view::npos; at = name.find("layers.", at + 1)) {
    if (LayerAt(name, at, &number, &end)) return number;
  }
  return "-";
}

/// What is behind the last "layers.<n>.".
std::string_view BehindLayers(std::string_view name) {
  std::string_view number;
  size_t end = 0;
  for (size_t at = name.rfind("layers."); at != std::string_view::npos; at = at ? name.rfind("layers.", at - 1) : at) {
    if (LayerAt(name, at, &number, &end) && end < name.size() && name[end] == '.') return name.substr(end + 1);
    if (at == 0) break;
  }
  return name;
}

std::string_view BehindLast(std::string_view name, std::string_view mark) {
  const size_t at = name.rfind(mark);
  return at == std::string_view::npos ? name : name.substr(at + mark.size());
}

/// Module path without the class.
std::string_view WithoutClass(std::string_view name) {
  const size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : name.substr(0, dot);
}

std::string_view LastNames(std::string_view module) {
  const size_t dot = module.find('.');
  return dot == std::string_view::npos ? module : module.substr(dot + 1);
}

std::string Key(const NameParts& op, std::string_view number, std::string_view module) {
  std::string key = op.direction == OpDirection::kForward    ? "forward."
                    : op.direction == OpDirection::kBackward ? "backward."
                                                             : "parameters_grad.";
  key.append(number).append("|").append(LayerOf(op.base)).append("|").append(module);
  return key;
}

std::string_view TrainingModule(std::string_view base, Mapping::Fused backend) {
  if (backend == Mapping::Fused::kFsdp) {
    const std::string_view inner = BehindLast(BehindLast(base, "_fsdp_wrapped_module."), "module.module.");
    return Renamed(kFsdpNames, LastNames(WithoutClass(inner)));
  }
  return Renamed(kMegatronNames, LastNames(WithoutClass(BehindLast(BehindLayers(base), "module.module."))));
}

std::string_view InferenceModule(std::string_view base, Mapping::Fused backend) {
  constexpr std::string_view kRoot = "Module.model.";
  std::string_view inner = BehindLayers(base);
  if (StartsWith(inner, kRoot)) inner.remove_prefix(kRoot.size());
  const std::string_view module = WithoutClass(inner);
  if (backend == Mapping::Fused::kFsdp) return BehindLast(module, ".");
  return Renamed(kMegatronNames, LastNames(module));
}

/// Training runs its backward pass between the end of the model's and the beginning of the next forward.
std::vector<bool> SkipBackward(const std::vector<std::string_view>& target, Mapping::Fused backend) {
  const bool fsdp = backend == Mapping::Fused::kFsdp;
  std::vector<bool> out(target.size(), false);
  bool skip = false;
  for (size_t i = 0; i < target.size(); ++i) {
    const NameParts op = ParseOpName(target[i]);
    const std::string_view type = BehindLast(op.base, ".");
    if (op.direction == OpDirection::kBackward) {
      const bool model =
          fsdp ? type == "Qwen2Model" || type == "Qwen3Model" || type == "Qwen3MoeModel" : type == "GPTModel";
      skip = skip || model;
    } else if (op.direction == OpDirection::kForward && type == (fsdp ? "Embedding" : "VocabParallelEmbedding")) {
      skip = false;
    }
    out[i] = skip;
  }
  return out;
}

/// Puts golden ops without partner where they stand among those with one.
void PlaceGoldenOnly(size_t goldens, FusedPlan* plan) {
  std::vector<bool> used(goldens, false);
  for (const FusedGroup& group : plan->groups) {
    for (const uint32_t g : group.goldens) used[g] = true;
  }
  plan->golden_first.resize(plan->group_of.size());
  uint32_t next = 0;
  for (uint32_t i = 0; i < plan->group_of.size(); ++i) {
    if (!plan->skipped[i]) plan->last = i;
    if (plan->skipped[i] || plan->group_of[i] == kNoGroup) continue;
    for (const uint32_t end = plan->groups[plan->group_of[i]].goldens.front(); next < end; ++next) {
      if (!used[next]) plan->golden_first[i].push_back(next);
    }
  }
  for (; next < goldens; ++next) {
    if (!used[next]) plan->golden_last.push_back(next);
  }
}

}  // namespace

std::string TrainingKey(std::string_view op, Mapping::Fused backend) {
  const NameParts parts = ParseOpName(op);
  return Key(parts, parts.number, TrainingModule(parts.base, backend));
}

std::string InferenceKey(std::string_view op, Mapping::Fused backend) {
  const NameParts parts = ParseOpName(op);
  return Key(parts, parts.number, InferenceModule(parts.base, backend));
}

FusedPlan PlanFused(const std::vector<std::string_view>& target, const std::vector<std::string_view>& golden,
                    Mapping::Fused backend) {
  FusedPlan plan;
  plan.join_targets = backend == Mapping::Fused::kFsdp;
  plan.group_of.assign(target.size(), kNoGroup);
  plan.skipped = SkipBackward(target, backend);
  std::unordered_map<std::string, std::vector<uint32_t>> goldens;
  for (uint32_t i = 0; i < golden.size(); ++i) goldens[InferenceKey(golden[i], backend)].push_back(i);
  std::unordered_map<std::string, uint32_t> groups;
  std::unordered_map<std::string_view, uint64_t> calls;
  for (uint32_t i = 0; i < target.size(); ++i) {
    if (plan.skipped[i]) continue;
    // Forward calls are counted anew: training also calls modules that inference does not.
    const NameParts op = ParseOpName(target[i]);
    std::string number(op.number);
    if (op.direction == OpDirection::kForward && !number.empty()) number = std::to_string(calls[op.base]++);
    const std::string key = Key(op, number, TrainingModule(op.base, backend));
    const auto partner = goldens.find(key);
    if (partner == goldens.end()) continue;
    const auto [it, fresh] = groups.try_emplace(key, static_cast<uint32_t>(plan.groups.size()));
    if (fresh) plan.groups.push_back({{}, partner->second});
    plan.groups[it->second].targets.push_back(i);
    plan.group_of[i] = it->second;
  }
  PlaceGoldenOnly(golden.size(), &plan);
  return plan;
}

}  // namespace msprobe
