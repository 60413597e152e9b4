// Training against inference (--consistent_check): an inference engine computes in one module what training computes in
// several, so that several ops stand against one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "match/mapping.h"

namespace msprobe {

inline constexpr uint32_t kNoGroup = UINT32_MAX;

/// Ops of the same layer, module (as the other side calls it), direction and call. Where several of one side stand
/// against one op of the other, their items are joined: target items with FSDP, golden items with Megatron.
struct FusedGroup {
  std::vector<uint32_t> targets, goldens;
};

struct FusedPlan {
  bool join_targets = true;
  std::string joint = ";  ";                        // between joined names
  std::vector<FusedGroup> groups;                   // with ops of both sides
  std::vector<uint32_t> group_of;                   // by target op; kNoGroup: it stands alone
  std::vector<bool> skipped;                        // target ops of the backward pass, which inference does not have
  std::vector<std::vector<uint32_t>> golden_first;  // by target op: golden ops without partner that come before it
  std::vector<uint32_t> golden_last;                // and behind the last one
  uint32_t last = 0;                                // the last target op that is not skipped
};

FusedPlan PlanFused(const std::vector<std::string_view>& target, const std::vector<std::string_view>& golden,
                    Mapping::Fused backend);

/// What an op of training or of inference has in common with its partners: "forward.0|3|qkv_proj". For tests.
std::string TrainingKey(std::string_view op, Mapping::Fused backend);
std::string InferenceKey(std::string_view op, Mapping::Fused backend);

}  // namespace msprobe
