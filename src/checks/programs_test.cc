// Programs of one's own and stacks whose options are like theirs, held against others by the rules.
#include <gtest/gtest.h>

#include "checks/checklist.h"
#include "checks/test_runs.h"

namespace msprobe {
namespace {

TEST(Programs, NamesThatMostOfThemUse) {
  const EffectiveRun own = RunOf(ConfigDialect::kUnknown, {{"MODEL.EMBED_DIM", "96"},
                                                           {"TRAIN.BASE_LR", "0.001"},
                                                           {"TRAIN.EPOCHS", "100"},
                                                           {"TRAIN.WARMUP_EPOCHS", "5"},
                                                           {"critic.lr", "0.5"},
                                                           {"model.gan.lr", "0.2"}});
  EXPECT_TRUE(own.Has(ConfigDialect::kOwn));
  EXPECT_EQ(own.Number("hidden_size"), 96);
  EXPECT_EQ(own.Number("lr"), 0.001);
  EXPECT_EQ(own.Number("warmup_share"), 0.05);
  EXPECT_EQ(own.Number("beta2"), std::nullopt) << "no default follows";
  const EffectiveRun two = RunOf(ConfigDialect::kOwn, {{"a.lr", "1"}, {"b.lr", "2"}, {"seed", "3"}});
  EXPECT_EQ(two.Number("lr"), std::nullopt) << "of two that differ nothing is said";
}

TEST(Programs, UnitsOfLengths) {
  const EffectiveRun batches = RunOf(ConfigDialect::kLlmFoundry, {{"max_duration", "1000ba"},
                                                                  {"scheduler.t_warmup", "0.1dur"},
                                                                  {"scheduler.name", "cosine_with_warmup"},
                                                                  {"global_train_batch_size", "8"}});
  EXPECT_EQ(batches.Number("warmup"), 100);
  const EffectiveRun tokens = RunOf(ConfigDialect::kOwn, {{"total_tokens", "81920000"},
                                                          {"warmup_tokens", "8192000"},
                                                          {"tokens_per_batch", "81920"},
                                                          {"lr_schedule", "cosine"},
                                                          {"seq_len", "1024"}});
  EXPECT_EQ(tokens.Number("warmup"), 100);
  EXPECT_EQ(VerdictBetween(batches, tokens, "optimizer.warmup_ratio"), "pass");
  EXPECT_EQ(VerdictBetween(batches, tokens, "optimizer.global_batch_size"), "fail");
}

TEST(Programs, ModelsOfLlmFoundryByTheirDefaults) {
  const SettingPairs told = {
      {"model.name", "mpt_causal_lm"}, {"precision", "amp_bf16"}, {"fsdp_config.mixed_precision", "DEFAULT"}};
  const EffectiveRun run = RunOf(ConfigDialect::kLlmFoundry, told);
  EXPECT_EQ(run.Word("precision"), "bf16") << "sharding takes the type of the precision";
  EXPECT_EQ(run.Truth("tied_embeddings"), true);
  EXPECT_EQ(run.Number("kv_heads"), 16);
  EXPECT_EQ(run.Number("intermediate_size"), 8192);
  EXPECT_EQ(run.Word("position_code"), "learned_absolute");
  const EffectiveRun other = RunOf(ConfigDialect::kLlmFoundry, {{"model.name", "hf_causal_lm"}});
  EXPECT_EQ(other.Find("tied_embeddings"), nullptr);
  const EffectiveRun rope =
      RunOf(ConfigDialect::kLlmFoundry,
            {{"model.name", "mpt_causal_lm"}, {"model.no_bias", "True"}, {"model.attn_config.rope", "True"}});
  EXPECT_EQ(rope.Word("position_code"), "rope");
  EXPECT_EQ(rope.Truth("qkv_bias"), false);
}

TEST(Programs, ScheduleAndBatchOfFairseq) {
  const SettingPairs told = {{"lr_scheduler", "polynomial_decay"},
                             {"distributed_world_size", "8"},
                             {"batch_size", "8"},
                             {"update_freq", "4"},
                             {"lr", "0.0006"},
                             {"total_num_update", "20000"}};
  const EffectiveRun run = RunOf(ConfigDialect::kFairseq, told);
  EXPECT_EQ(run.Word("schedule"), "linear");
  EXPECT_EQ(run.Number("min_lr"), 0);
  EXPECT_EQ(run.Number("global_batch"), 256);
  EXPECT_EQ(run.Find("lr_power"), nullptr);
  SettingPairs square = told;
  square.emplace_back("power", "2.0");
  EXPECT_EQ(RunOf(ConfigDialect::kFairseq, square).Word("schedule"), "polynomial");
}

TEST(Programs, AdamWithoutDecayIsAdamW) {
  const auto run = [](const char* kind, const char* decay) {
    return RunOf(ConfigDialect::kOwn, {{"optimizer", kind}, {"weight_decay", decay}, {"lr", "1"}});
  };
  EXPECT_EQ(VerdictBetween(run("adam", "0"), run("AdamW", "0"), "optimizer.type"), "pass");
  EXPECT_EQ(VerdictBetween(run("adam", "0.1"), run("AdamW", "0.1"), "optimizer.type"), "ask");
  EXPECT_EQ(VerdictBetween(run("sgd", "0.1"), run("AdamW", "0.1"), "optimizer.type"), "fail");
}

TEST(Programs, SchedulesOfMmengine) {
  const EffectiveRun run = RunOf(ConfigDialect::kMmengine, {{"param_scheduler.0.type", "LinearLR"},
                                                            {"param_scheduler.0.start_factor", "0.001"},
                                                            {"param_scheduler.0.by_epoch", "False"},
                                                            {"param_scheduler.0.begin", "0"},
                                                            {"param_scheduler.0.end", "500"},
                                                            {"param_scheduler.1.type", "CosineAnnealingLR"},
                                                            {"param_scheduler.1.begin", "500"},
                                                            {"param_scheduler.1.end", "5000"},
                                                            {"param_scheduler.1.by_epoch", "False"}});
  EXPECT_EQ(run.Number("warmup"), 500);
  EXPECT_EQ(run.Number("decay_end"), 5000);
  EXPECT_EQ(run.Word("schedule"), "cosine");
}

TEST(Programs, BatchesOfOneProcessOrOfAll) {
  const auto run = [](const char* batch, const char* world) {
    return RunOf(ConfigDialect::kOwn, {{"batch_size", batch}, {"world_size", world}, {"lr", "1"}});
  };
  EXPECT_EQ(VerdictBetween(run("32", "4"), run("32", "4"), "optimizer.global_batch_size"), "ask");
  EXPECT_EQ(VerdictBetween(run("32", "4"), run("64", "4"), "optimizer.global_batch_size"), "fail");
  const EffectiveRun all = RunOf(ConfigDialect::kMegatron, {{"global_batch_size", "128"}});
  EXPECT_EQ(VerdictBetween(run("32", "4"), all, "optimizer.global_batch_size"), "ask");
  EXPECT_EQ(VerdictBetween(run("48", "4"), all, "optimizer.global_batch_size"), "fail");
}

TEST(Programs, NumbersThatMayBeInAnotherUnit) {
  const auto own = [](const char* warmup) {
    return RunOf(ConfigDialect::kOwn,
                 {{"warmup_steps", warmup}, {"global_batch_size", "64"}, {"lr", "1e-3"}, {"steps", "9000"}});
  };
  const EffectiveRun stack = RunOf(
      ConfigDialect::kMegatron,
      {{"lr_warmup_iters", "100"}, {"train_iters", "9000"}, {"lr_decay_iters", "9000"}, {"global_batch_size", "64"}});
  EXPECT_EQ(VerdictBetween(own("100"), stack, "optimizer.warmup_ratio"), "pass");
  EXPECT_EQ(VerdictBetween(own("250"), stack, "optimizer.warmup_ratio"), "fail");
  EXPECT_EQ(VerdictBetween(own("6400"), stack, "optimizer.warmup_ratio"), "ask") << "in samples they are alike";
  const EffectiveRun untied = RunOf(ConfigDialect::kOwn, {{"tie_word_embeddings", "False"}, {"num_layers", "2"}});
  const EffectiveRun tied = RunOf(ConfigDialect::kMegatron, {{"num_layers", "2"}});
  EXPECT_EQ(VerdictBetween(untied, tied, "structure.tied_embeddings"), "fail") << "a flag has no unit";
  // A default that nobody wrote is no reason to accuse a name that others use otherwise.
  const EffectiveRun named = RunOf(ConfigDialect::kOwn, {{"beta2", "0.95"}, {"lr", "1e-3"}});
  EXPECT_NE(VerdictBetween(named, stack, "optimizer.beta2"), "fail");
}

TEST(Programs, TheEpsilonOfTheNormThatIsUsed) {
  const auto neox = [](const char* norm) {
    return RunOf(ConfigDialect::kNeox, {{"norm", norm}, {"layernorm_epsilon", "1e-6"}, {"num-layers", "2"}});
  };
  EXPECT_EQ(neox("layernorm").Number("norm_eps"), 1e-6);
  EXPECT_EQ(neox("rmsnorm").Number("norm_eps"), 1e-8) << "by default";
  const EffectiveRun both =
      RunOf(ConfigDialect::kNeox, {{"norm", "rmsnorm"}, {"layernorm_epsilon", "1e-6"}, {"rms_norm_epsilon", "1e-5"}});
  EXPECT_EQ(both.Number("norm_eps"), 1e-5);
}

TEST(Programs, SmoothingOfTimmByItsDefault) {
  const EffectiveRun timm = RunOf(ConfigDialect::kTimm, {{"model", "vit"}, {"lr", "1e-3"}});
  EXPECT_EQ(timm.Number("label_smoothing"), 0.1);
  const EffectiveRun sharp = RunOf(ConfigDialect::kTimm, {{"model", "vit"}, {"lr", "1e-3"}, {"smoothing", "0"}});
  EXPECT_EQ(VerdictBetween(timm, sharp, "data.loss_members"), "fail");
}

}  // namespace
}  // namespace msprobe
