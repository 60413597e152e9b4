#include "match/fused_plan.h"

#include <gtest/gtest.h>

namespace msprobe {
namespace {

constexpr auto kFsdp = Mapping::Fused::kFsdp;
constexpr auto kMegatron = Mapping::Fused::kMegatron;

TEST(FusedPlan, KeysOfFsdpAndInference) {
  const std::string layer = "Module._fsdp_wrapped_module.model.layers.3._fsdp_wrapped_module.";
  const std::string qkv = InferenceKey("Module.model.layers.3.self_attn.qkv_proj.QKVParallelLinear.forward.0", kFsdp);
  EXPECT_EQ(qkv, "forward.0|3|qkv_proj");
  EXPECT_EQ(TrainingKey(layer + "self_attn.q_proj.Linear.forward.0", kFsdp), qkv);
  EXPECT_EQ(TrainingKey(layer + "self_attn.v_proj.Linear.forward.0", kFsdp), qkv);
  EXPECT_NE(TrainingKey(layer + "self_attn.o_proj.Linear.forward.0", kFsdp), qkv);
  EXPECT_EQ(TrainingKey(layer + "Qwen3DecoderLayer.forward.0", kFsdp),
            InferenceKey("Module.model.layers.3.Qwen3DecoderLayer.forward.0", kFsdp));
  EXPECT_EQ(TrainingKey("Module._fsdp_wrapped_module.model.norm.RMSNorm.forward.0", kFsdp),
            InferenceKey("Module.model.norm.RMSNorm.forward.0", kFsdp));
  EXPECT_EQ(TrainingKey("Module._fsdp_wrapped_module.lm_head.Linear.forward.0", kFsdp),
            InferenceKey("Module.lm_head.Linear.forward.0", kFsdp));
}

TEST(FusedPlan, KeysOfMegatronAndInference) {
  const std::string layer = "Module.module.module.decoder.layers.12.";
  EXPECT_EQ(TrainingKey(layer + "self_attention.linear_qkv.ColumnParallelLinear.forward.0", kMegatron),
            InferenceKey("Module.model.layers.12.self_attn.qkv_proj.QKVParallelLinear.forward.0", kMegatron));
  EXPECT_EQ(TrainingKey(layer + "self_attention.SelfAttention.forward.0", kMegatron),
            InferenceKey("Module.model.layers.12.self_attn.Qwen3Attention.forward.0", kMegatron));
  EXPECT_EQ(TrainingKey(layer + "mlp.linear_fc2.RowParallelLinear.forward.0", kMegatron),
            InferenceKey("Module.model.layers.12.mlp.down_proj.RowParallelLinear.forward.0", kMegatron));
  EXPECT_EQ(TrainingKey("Module.module.module.embedding.word_embeddings.VocabParallelEmbedding.forward.0", kMegatron),
            InferenceKey("Module.model.embed_tokens.VocabParallelEmbedding.forward.0", kMegatron));
}

TEST(FusedPlan, BackwardOfTheModelIsLeftOutUntilTheNextForward) {
  const std::vector<std::string_view> target = {
      "Module._fsdp_wrapped_module.model.embed_tokens.Embedding.forward.0",
      "Module._fsdp_wrapped_module.lm_head.Linear.backward.0",
      "Module._fsdp_wrapped_module.model.Qwen3Model.backward.0",
      "Module._fsdp_wrapped_module.model.norm.RMSNorm.backward.0",
      "Module._fsdp_wrapped_module.model.embed_tokens.Embedding.forward.1",
  };
  const std::vector<std::string_view> golden = {"Module.sampler.Sampler.forward.0",
                                                "Module.model.embed_tokens.Embedding.forward.0",
                                                "Module.logits.Logits.forward.0"};
  const FusedPlan plan = PlanFused(target, golden, kFsdp);
  EXPECT_EQ(plan.skipped, (std::vector<bool>{false, false, true, true, false}));
  ASSERT_EQ(plan.groups.size(), 1u);
  EXPECT_EQ(plan.groups[0].targets, (std::vector<uint32_t>{0}));
  EXPECT_EQ(plan.group_of[4], kNoGroup);
  EXPECT_EQ(plan.golden_first[0], (std::vector<uint32_t>{0}));
  EXPECT_EQ(plan.golden_last, (std::vector<uint32_t>{2}));
  EXPECT_EQ(plan.last, 4u);
}

TEST(FusedPlan, OddNames) {
  for (const char* name : {"", ".", "layers.", "layers.x.layers.", "a.layers.1", "forward.0",
                           "layers.99999999999999999999.a.B.forward.0"}) {
    for (const auto backend : {kFsdp, kMegatron}) {
      EXPECT_FALSE(TrainingKey(name, backend).empty());
      EXPECT_FALSE(InferenceKey(name, backend).empty());
    }
  }
}

}  // namespace
}  // namespace msprobe
