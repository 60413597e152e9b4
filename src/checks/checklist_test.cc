#include "checks/checklist.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "base/text.h"
#include "checks/test_runs.h"
#include "config/read_configuration.h"

namespace msprobe {
namespace {

namespace fs = std::filesystem;

const fs::path kData = fs::path(MSPROBE_SOURCE_DIR) / "tests/checks";

std::string ReadAll(const fs::path& path) {
  std::ostringstream out;
  out << std::ifstream(path).rdbuf();
  return out.str();
}

struct Planted {
  std::string rule, verdict, pair, file, from, to;
};

std::string Trim(std::string text) {
  text.erase(0, text.find_first_not_of(" \t"));
  text.erase(text.find_last_not_of(" \t") + 1);
  return text;
}

std::vector<Planted> AllPlanted() {
  std::vector<Planted> out;
  std::ifstream in(kData / "planted.txt");
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::vector<std::string> parts;
    for (const std::string_view part : Split(line, '|')) parts.push_back(Trim(std::string(part)));
    parts.resize(6);
    out.push_back({parts[0], parts[1], parts[2], parts[3], parts[4], parts[5]});
  }
  return out;
}

/// A copy of the pair's files, in which one text is replaced; "; " of the replacement begins a new line.
class PairFiles {
 public:
  explicit PairFiles(const std::string& pair) : pair_(pair) {
    static int number = 0;
    folder_ = fs::temp_directory_path() / ("checklist_" + std::to_string(getpid()) + "_" + std::to_string(number++));
    fs::create_directories(folder_);
    for (const auto& entry : fs::directory_iterator(kData))
      fs::copy_file(entry.path(), folder_ / entry.path().filename());
  }
  ~PairFiles() { fs::remove_all(folder_); }

  bool Plant(const Planted& fault) {
    const std::map<std::string, std::string> names = {{"script", "megatron_" + pair_ + ".sh"},
                                                      {"common", "moe_common.sh"},
                                                      {"yaml", "mindformers_" + pair_ + ".yaml"}};
    const fs::path path = folder_ / names.at(fault.file);
    std::string text = ReadAll(path);
    const size_t at = text.find(fault.from);
    if (at == std::string::npos) return false;
    const size_t line = text.rfind('\n', at) + 1;
    std::string to = fault.to;
    for (size_t next; (next = to.find("; ")) != std::string::npos;) {
      to.replace(next, 2, "\n" + text.substr(line, text.find_first_not_of(' ', line) - line));
    }
    text.replace(at, fault.from.size(), to);
    std::ofstream(path) << text;
    return true;
  }

  std::vector<CheckFinding> Run(std::span<const ChecklistRule> rules = ChecklistRules()) const {
    const auto target = ReadConfiguration({(folder_ / ("megatron_" + pair_ + ".sh")).string()});
    const auto golden = ReadConfiguration({(folder_ / ("mindformers_" + pair_ + ".yaml")).string()});
    EXPECT_TRUE(target.ok() && golden.ok());
    const EffectiveRun left(*target), right(*golden);
    return RunChecklist(left, &right, rules);
  }

 private:
  std::string pair_;
  fs::path folder_;
};

TEST(Checklist, NothingFailsOfAlignedPairs) {
  for (const std::string pair : {"dense", "moe"}) {
    for (const CheckFinding& finding : PairFiles(pair).Run()) {
      EXPECT_NE(finding.verdict, CheckVerdict::kFail)
          << pair << " " << finding.rule->id << ": " << finding.target << " " << finding.golden;
    }
  }
}

TEST(Checklist, EachPlantedMismatchIsFoundByItsRuleAndByNoneOnceThatIsRemoved) {
  int failing = 0;
  for (const Planted& fault : AllPlanted()) {
    PairFiles files(fault.pair);
    if (fault.file != "-") {
      EXPECT_NE(VerdictOf(files.Run(), fault.rule), "fail") << fault.rule;
      ASSERT_TRUE(files.Plant(fault)) << fault.rule;
    }
    EXPECT_EQ(VerdictOf(files.Run(), fault.rule), fault.verdict) << fault.rule;
    failing += fault.verdict == "fail";
    std::vector<ChecklistRule> others;
    for (const ChecklistRule& rule : ChecklistRules()) {
      if (rule.id != fault.rule) others.push_back(rule);
    }
    EXPECT_EQ(VerdictOf(files.Run(others), fault.rule), "nothing");
  }
  EXPECT_GE(failing, 30);
}

TEST(Checklist, EachRuleHasAPlantedCaseAndTextsInBothLanguages) {
  std::set<std::string> planted, ids;
  for (const Planted& fault : AllPlanted()) planted.insert(fault.rule);
  for (const ChecklistRule& rule : ChecklistRules()) {
    EXPECT_TRUE(ids.insert(std::string(rule.id)).second) << rule.id;
    EXPECT_TRUE(planted.count(std::string(rule.id))) << rule.id;
    for (const std::string_view text : {rule.reason, rule.fix, rule.reason_zh, rule.fix_zh}) EXPECT_FALSE(text.empty());
  }
  EXPECT_EQ(planted.size(), ids.size());
}

TEST(Checklist, RulesAboutOneRunFireWhenBothAgree) {
  PairFiles files("moe");
  ASSERT_TRUE(files.Plant({"", "", "", "yaml", "capacity_factor: 1.5", "capacity_factor: 0.8"}));
  ASSERT_TRUE(
      files.Plant({"", "", "", "script", "--moe-expert-capacity-factor 1.5", "--moe-expert-capacity-factor 0.8"}));
  EXPECT_EQ(VerdictOf(files.Run(), "moe.capacity_equal"), "pass");
  EXPECT_EQ(VerdictOf(files.Run(), "moe.capacity_factor"), "fail");
}

TEST(Checklist, OriginsNameFileAndLine) {
  for (const CheckFinding& finding : PairFiles("dense").Run()) {
    if (finding.rule->id != "structure.num_layers") continue;
    EXPECT_TRUE(EndsWith(finding.target_origin, "megatron_dense.sh:21")) << finding.target_origin;
    EXPECT_TRUE(EndsWith(finding.golden_origin, "mindformers_dense.yaml:75")) << finding.golden_origin;
  }
}

TEST(Checklist, WhatNoFileSetsIsTheDefaultOfTheFramework) {
  ConfigSource script;
  script.dialect = ConfigDialect::kMegatron;
  script.settings = {{"num_layers", ConfigValue::Of("4"), "a.sh", 1},
                     {"hidden_size", ConfigValue::Of("1024"), "a.sh", 1},
                     {"vocab_size", ConfigValue::Of("50257"), "a.sh", 2},
                     {"tensor_model_parallel_size", ConfigValue::Of("2"), "a.sh", 3}};
  Configuration configuration;
  configuration.sources = {script};
  const EffectiveRun run(configuration);
  EXPECT_EQ(run.Number("hidden_dropout"), 0.1);
  EXPECT_EQ(run.Number("beta2"), 0.999);
  EXPECT_EQ(run.Number("padded_vocab"), 50432);  // a multiple of 128 x 2
  EXPECT_EQ(run.Number("intermediate_size"), 4096);
  EXPECT_EQ(run.Truth("tied_embeddings"), true);
  EXPECT_EQ(run.Find("beta2")->origin, "default of Megatron");
}

TEST(Checklist, WindowsCountTheirTokensAlike) {
  const EffectiveRun megatron = RunOf(ConfigDialect::kMegatron, {{"window_size", "(4095, 0)"}, {"num_layers", "2"}});
  const SettingPairs model = {{"model_type", "qwen2"}, {"num_hidden_layers", "2"}, {"sliding_window", "4096"}};
  EXPECT_EQ(VerdictBetween(megatron, RunOf(ConfigDialect::kHfModel, model), "structure.attention_mask"), "pass");
  auto unused = model;
  unused.push_back({"use_sliding_window", "False"});
  EXPECT_EQ(VerdictBetween(megatron, RunOf(ConfigDialect::kHfModel, unused), "structure.attention_mask"), "fail");
  for (const auto& [length, verdict] : {std::pair("4096", "warn"), {"8192", "fail"}}) {  // of what it can hide
    const EffectiveRun of_length =
        RunOf(ConfigDialect::kMegatron, {{"window_size", "(4095, 0)"}, {"num_layers", "2"}, {"seq_length", length}});
    EXPECT_EQ(VerdictBetween(of_length, RunOf(ConfigDialect::kHfModel, unused), "structure.attention_mask"), verdict);
  }
}

TEST(Checklist, LayersWithoutExpertsInFront) {
  for (const auto& [layers, verdict] : {std::pair("([0]*3+[1]*24)", "pass"),
                                        {"[0]+[0]*2+[1]*24", "pass"},
                                        {"[0]*1+[1]*26", "fail"},
                                        {"1", "fail"},
                                        {"([0,1]*13)", "nothing"}}) {
    const EffectiveRun megatron = RunOf(ConfigDialect::kMegatron, {{"moe_layer_freq", layers}, {"num_experts", "8"}});
    const EffectiveRun model = RunOf(ConfigDialect::kHfModel, {{"model_type", "deepseek_v3"},
                                                               {"num_hidden_layers", "27"},
                                                               {"n_routed_experts", "8"},
                                                               {"first_k_dense_replace", "3"}});
    EXPECT_EQ(VerdictBetween(megatron, model, "moe.router_members"), verdict) << layers;
  }
}

TEST(Checklist, WhatOnlyARunKnowsIsNoDefault) {
  const auto run = [](const char* accumulation, const char* eps) {
    return RunOf(
        ConfigDialect::kHfTrainer,
        {{"per_device_train_batch_size", "4"}, {"gradient_accumulation_steps", accumulation}, {"adam_epsilon", eps}});
  };
  EXPECT_EQ(VerdictBetween(run("$(nproc)", "1e-8"), run("8", "1e-8"), "optimizer.global_batch_size"), "ask");
  EXPECT_EQ(VerdictBetween(run("8", "${EPS}"), run("8", "1e-6"), "optimizer.eps"), "ask")
      << "not the default of the stack";
}

TEST(Checklist, SectionsOfAnOwnYamlHaveTheNamesOfTheTrainer) {
  const auto run = [](const char* eps) { return RunOf(ConfigDialect::kHfTrainer, {{"training.adam_epsilon", eps}}); };
  EXPECT_EQ(VerdictBetween(run("1e-8"), run("1e-6"), "optimizer.eps"), "fail");
  EXPECT_EQ(VerdictBetween(run("1e-8"), run("1e-08"), "optimizer.eps"), "pass");
}

TEST(Checklist, AdaptersAndClippingByTheirDefaults) {
  const EffectiveRun factory =
                         RunOf(ConfigDialect::kLlamaFactory, {{"finetuning_type", "lora"}, {"lora_target", "all"}}),
                     swift = RunOf(ConfigDialect::kSwift,
                                   {{"train_type", "lora"}, {"lora_alpha", "16"}, {"lora_dropout", "0"}}),
                     plain = RunOf(ConfigDialect::kSwift, {{"train_type", "lora"}, {"lora_dropout", "0"}});
  EXPECT_EQ(VerdictBetween(factory, swift, "structure.adapter"), "pass");
  EXPECT_EQ(VerdictBetween(factory, plain, "structure.adapter"), "fail");
  const EffectiveRun norm = RunOf(ConfigDialect::kLightning, {{"trainer.gradient_clip_val", "1.0"}}),
                     value = RunOf(ConfigDialect::kLightning, {{"trainer.gradient_clip_val", "1.0"},
                                                               {"trainer.gradient_clip_algorithm", "value"}});
  EXPECT_EQ(VerdictBetween(norm, norm, "optimizer.clip_grad"), "pass");
  EXPECT_EQ(VerdictBetween(norm, value, "optimizer.clip_grad"), "fail");
}

TEST(Checklist, WarmupInStepsSamplesRatiosAndShares) {
  const EffectiveRun steps = RunOf(ConfigDialect::kMegatron, {{"lr_warmup_iters", "10"}, {"train_iters", "1000"}});
  const EffectiveRun samples =
      RunOf(ConfigDialect::kMegatron, {{"lr_warmup_samples", "80"}, {"global_batch_size", "8"}});
  const EffectiveRun share =
      RunOf(ConfigDialect::kMindFormers, {{"lr_schedule.warmup_ratio", "0.01"}, {"lr_schedule.total_steps", "-1"}});
  const EffectiveRun other =
      RunOf(ConfigDialect::kMindFormers, {{"lr_schedule.warmup_ratio", "0.03"}, {"lr_schedule.total_steps", "-1"}});
  EXPECT_EQ(VerdictBetween(steps, samples, "optimizer.warmup_ratio"), "pass");
  EXPECT_EQ(VerdictBetween(steps, share, "optimizer.warmup_ratio"), "pass");
  EXPECT_EQ(VerdictBetween(steps, other, "optimizer.warmup_ratio"), "fail");
}

TEST(Checklist, DefaultsOfDeepSpeedAreThoseOfWhatItsFileNames) {
  ConfigSource deepspeed{ConfigDialect::kDeepSpeed,
                         "ds.json",
                         {{"optimizer.type", ConfigValue::Of("Adam"), "ds.json", 2},
                          {"optimizer.params.eps", ConfigValue::Of("auto"), "ds.json", 3},
                          {"scheduler.type", ConfigValue::Of("WarmupDecayLR"), "ds.json", 4}}};
  Configuration configuration;
  configuration.sources = {deepspeed};
  const EffectiveRun run(std::move(configuration));
  EXPECT_EQ(run.Number("beta2"), 0.999);
  EXPECT_EQ(run.Number("lr"), 0.001);
  EXPECT_EQ(run.Find("lr")->origin, "default of DeepSpeed");
  EXPECT_EQ(run.Find("eps"), nullptr) << "auto is for the trainer to say";
  EXPECT_EQ(run.Number("warmup"), 1000);
  EXPECT_EQ(run.Word("schedule"), "linear");
  EXPECT_EQ(run.Word("optimizer_kind"), "adamw");
}

EffectiveRun WithTokenizer(int64_t eos, int64_t largest, const std::string& vocabulary) {
  Configuration configuration;
  configuration.sources = {{ConfigDialect::kHfModel,
                            "config.json",
                            {{"vocab_size", ConfigValue::Of(int64_t{32000}), "config.json", 1},
                             {"eos_token_id", ConfigValue::Of(int64_t{2}), "config.json", 2}}},
                           {ConfigDialect::kTokenizer,
                            "tokenizer.json",
                            {{"tokenizer.vocabulary", ConfigValue::Of(vocabulary), "tokenizer.json"},
                             {"tokenizer.largest_id", ConfigValue::Of(largest), "tokenizer.json"},
                             {"tokenizer.eos_token", ConfigValue::Of(eos), "tokenizer.json"}}}};
  return EffectiveRun(std::move(configuration));
}

TEST(Checklist, TokenizersAreHeldAgainstTheModelAndEachOther) {
  const EffectiveRun fine = WithTokenizer(2, 31999, "a"), other = WithTokenizer(2, 31999, "b");
  EXPECT_EQ(VerdictOf(RunChecklist(fine, &fine), "other.tokenizer"), "pass");
  EXPECT_EQ(VerdictOf(RunChecklist(fine, &other), "other.tokenizer"), "fail");
  EXPECT_EQ(VerdictOf(RunChecklist(fine, nullptr), "other.tokenizer_ids"), "pass");
  EXPECT_EQ(VerdictOf(RunChecklist(WithTokenizer(7, 31999, "a"), nullptr), "other.tokenizer_ids"), "fail");
  EXPECT_EQ(VerdictOf(RunChecklist(fine, nullptr), "other.tokenizer_size"), "pass");
  EXPECT_EQ(VerdictOf(RunChecklist(WithTokenizer(2, 32000, "a"), nullptr), "other.tokenizer_size"), "fail");
}

TEST(Checklist, SpecialTokensOfTwoTokenizersAreTheSame) {
  const EffectiveRun fine = WithTokenizer(2, 31999, "a");
  EXPECT_EQ(VerdictOf(RunChecklist(fine, &fine), "other.tokenizer_special"), "pass");
  const EffectiveRun other = WithTokenizer(7, 31999, "a");
  EXPECT_EQ(VerdictOf(RunChecklist(fine, &other), "other.tokenizer_special"), "fail");
}

/// A run with recorded tokens, of which a share comes back from its tokenizer; below 0: it is not known.
EffectiveRun WithRecordedTokens(double share, int64_t unknown) {
  Configuration configuration;
  configuration.sources = {{ConfigDialect::kTokenizer,
                            "tokenizer.json",
                            {{"tokenizer.vocabulary", ConfigValue::Of(std::string("a")), "tokenizer.json"},
                             {"tokenizer.ids_without_a_token", ConfigValue::Of(unknown), "tokenizer.json"}}}};
  if (share >= 0) {
    configuration.sources[0].settings.push_back(
        {"tokenizer.share_that_comes_back", ConfigValue::Of(share), "tokenizer.json"});
  }
  Pack pack;
  pack.dataset[{0, 0}].push_back({"input_ids", true, {31, 0, 15, 60}});
  return EffectiveRun(std::move(configuration), &pack);
}

TEST(Checklist, RecordedTokensComeBackFromTheirTokenizer) {
  const auto verdict = [](double share, int64_t unknown) {
    return VerdictOf(RunChecklist(WithRecordedTokens(share, unknown), nullptr), "other.round_trip");
  };
  EXPECT_EQ(verdict(1, 0), "pass");
  EXPECT_EQ(verdict(0.9, 0), "warn");
  EXPECT_EQ(verdict(0.3, 0), "fail");
  EXPECT_EQ(verdict(-1, 0), "ask");
  EXPECT_EQ(verdict(-1, 3), "fail");
}

EffectiveRun WithPackages(const SettingPairs& packages) {
  Configuration configuration;
  configuration.packages = packages;
  return EffectiveRun(std::move(configuration));
}

TEST(Checklist, VersionsBetweenWhichSomethingChanged) {
  const EffectiveRun old = WithPackages({{"transformers", "4.45.2"}, {"torch", "2.5.1"}}),
                     fresh = WithPackages({{"transformers", "4.57.0"}, {"torch", "2.5.0+cpu"}}),
                     later = WithPackages({{"transformers", "4.57.9"}, {"torch", "2.5.1"}}),
                     mixed = WithPackages({{"torch", "2.5.1"}, {"torch_npu", "2.1.0.post6"}});
  EXPECT_EQ(VerdictOf(RunChecklist(old, &fresh), "other.known_versions"), "warn");
  EXPECT_EQ(VerdictOf(RunChecklist(later, &fresh), "other.known_versions"), "pass");
  EXPECT_EQ(VerdictOf(RunChecklist(later, &fresh), "other.versions"), "pass");
  EXPECT_EQ(VerdictOf(RunChecklist(old, &fresh), "other.versions"), "warn");
  EXPECT_EQ(VerdictOf(RunChecklist(mixed, nullptr), "other.known_versions"), "fail");
}

TEST(Checklist, WarmupStepsBelowOneAreAShare) {
  ConfigSource trainer{ConfigDialect::kHfTrainer,
                       "args.yaml",
                       {{"warmup_steps", ConfigValue::Of(0.1), "args.yaml", 1},
                        {"max_steps", ConfigValue::Of(int64_t{1000}), "args.yaml", 2}}};
  Configuration configuration;
  configuration.sources = {trainer};
  const EffectiveRun run(std::move(configuration));
  EXPECT_EQ(run.Number("warmup"), 100);
  EXPECT_EQ(run.Number("warmup_share"), 0.1);
}

TEST(Checklist, BatchesOfTheTrainerAndAutoOfDeepSpeed) {
  ConfigSource trainer{ConfigDialect::kHfTrainer,
                       "a",
                       {{"per_device_train_batch_size", ConfigValue::Of("2"), "a", 1},
                        {"gradient_accumulation_steps", ConfigValue::Of("4"), "a", 1}}};
  ConfigSource deepspeed{ConfigDialect::kDeepSpeed,
                         "b",
                         {{"train_batch_size", ConfigValue::Of("auto"), "b", 1},
                          {"gradient_clipping", ConfigValue::Of("auto"), "b", 2},
                          {"zero_optimization.stage", ConfigValue::Of(int64_t{1}), "b", 3}}};
  Configuration configuration;
  configuration.sources = {deepspeed, trainer};
  configuration.launcher = {{"num_gpus", ConfigValue::Of("4"), "a", 1}};
  const EffectiveRun run(configuration);
  EXPECT_EQ(run.Number("global_batch"), 32);
  EXPECT_EQ(run.Number("clip_grad"), 1.0);
  EXPECT_EQ(run.Truth("parallel_optimizer"), true);
  EXPECT_EQ(run.Number("beta2"), 0.999);
}

TEST(Checklist, LossScales) {
  const EffectiveRun bf16 = RunOf(ConfigDialect::kMegatron, {{"bf16", "True"}, {"num_layers", "2"}});
  const EffectiveRun fp16 = RunOf(ConfigDialect::kMegatron, {{"fp16", "True"}, {"num_layers", "2"}});
  const std::pair<std::string, std::string> dynamic{"runner_wrapper.scale_sense.type", "DynamicLossScaleUpdateCell"};
  const EffectiveRun other =
      RunOf(ConfigDialect::kMindFormers, {dynamic, {"model.model_config.compute_dtype", "bfloat16"}});
  EXPECT_EQ(VerdictBetween(bf16, other, "optimizer.loss_scale"), "warn");
  const EffectiveRun half =
      RunOf(ConfigDialect::kMindFormers, {dynamic, {"model.model_config.compute_dtype", "float16"}});
  EXPECT_EQ(VerdictBetween(fp16, half, "optimizer.loss_scale"), "ask")
      << "where that of MindFormers begins is not known";
  EXPECT_EQ(VerdictBetween(RunOf(ConfigDialect::kMegatron, {{"fp16", "True"}, {"loss_scale", "1024"}}), half,
                           "optimizer.loss_scale"),
            "fail");
}

TEST(Checklist, ScalesThatAdaptBeginSomewhere) {
  const EffectiveRun megatron = RunOf(ConfigDialect::kMegatron, {{"fp16", "True"}, {"num_layers", "2"}});
  const EffectiveRun same =
      RunOf(ConfigDialect::kMegatron, {{"fp16", "True"}, {"num_layers", "2"}, {"initial_loss_scale", "65536"}});
  const EffectiveRun deepspeed = RunOf(ConfigDialect::kDeepSpeed, {{"fp16.enabled", "True"}, {"fp16.loss_scale", "0"}});
  const EffectiveRun higher =
      RunOf(ConfigDialect::kDeepSpeed, {{"fp16.enabled", "True"}, {"fp16.initial_scale_power", "32"}});
  EXPECT_EQ(deepspeed.Number("initial_loss_scale"), 65536);
  EXPECT_EQ(VerdictBetween(deepspeed, megatron, "optimizer.loss_scale"), "fail");
  EXPECT_EQ(VerdictBetween(deepspeed, same, "optimizer.loss_scale"), "pass");
  EXPECT_EQ(VerdictBetween(higher, megatron, "optimizer.loss_scale"), "pass");
  const EffectiveRun bf16 = RunOf(ConfigDialect::kMegatron, {{"bf16", "True"}, {"num_layers", "2"}});
  EXPECT_EQ(bf16.Find("initial_loss_scale"), nullptr);
}

TEST(Checklist, ModelsOfTransformersAddTheirBalancingLossWithTheLogitsOfTheRouter) {
  const auto run = [](const char* logits) {
    return RunOf(ConfigDialect::kHfModel, {{"model_type", "mixtral"},
                                           {"num_hidden_layers", "2"},
                                           {"num_local_experts", "8"},
                                           {"router_aux_loss_coef", "0.02"},
                                           {"output_router_logits", logits}});
  };
  EXPECT_EQ(run("False").Number("aux_loss"), 0);
  EXPECT_EQ(run("True").Number("aux_loss"), 0.02);
  const EffectiveRun megatron = RunOf(ConfigDialect::kMegatron, {{"num_experts", "8"}, {"moe_aux_loss_coeff", "0.02"}});
  EXPECT_EQ(VerdictBetween(megatron, run("False"), "moe.aux_loss_equal"), "fail");
  EXPECT_EQ(VerdictBetween(megatron, run("True"), "moe.aux_loss_equal"), "pass");
}

TEST(Checklist, GroupsInALogTellWhichWeightsDecay) {
  const EffectiveRun yaml = RunOf(ConfigDialect::kMindFormers, {{"optimizer.weight_decay", "0.1"}});
  const SettingPairs all = {{"type", "AdamW"}, {"groups.0.weight_decay", "0.1"}};
  auto two = all;
  two.push_back({"groups.1.weight_decay", "0.0"});
  const EffectiveRun one_group = RunOf(ConfigDialect::kTorchLog, all),
                     two_groups = RunOf(ConfigDialect::kTorchLog, two);
  EXPECT_EQ(VerdictBetween(one_group, yaml, "optimizer.decayed_weights"), "fail");
  EXPECT_EQ(VerdictBetween(two_groups, yaml, "optimizer.decayed_weights"), "ask");
  EXPECT_EQ(VerdictBetween(two_groups, two_groups, "optimizer.decayed_weights"), "pass");
  EXPECT_EQ(two_groups.Number("weight_decay"), 0.1);
}

TEST(Checklist, OtherNamesOfTheSame) {
  const EffectiveRun megatron = RunOf(ConfigDialect::kMegatron, {{"num_experts", "8"},
                                                                 {"use_rotary_position_embeddings", "True"},
                                                                 {"moe_aux_loss_coeff", "0.01"},
                                                                 {"moe_router_load_balancing_type", "none"},
                                                                 {"moe_ffn_hidden_size", "128"},
                                                                 {"moe_shared_expert_intermediate_size", "256"}});
  const EffectiveRun mindformers = RunOf(ConfigDialect::kMindFormers, {{"moe_config.expert_num", "8"},
                                                                       {"moe_config.capacity_factor", "-1.0"},
                                                                       {"moe_config.aux_loss_factor", "0.0"},
                                                                       {"moe_config.shared_expert_num", "2"}});
  for (const std::string rule : {"structure.position_code", "moe.capacity_equal", "moe.capacity_factor",
                                 "moe.aux_loss_equal", "moe.shared_expert_num", "moe.enable_sdrop"}) {
    EXPECT_EQ(VerdictBetween(megatron, mindformers, rule), "pass") << rule;
  }
}

TEST(Checklist, SectionsOfAYamlOfMegatron) {
  const EffectiveRun run = RunOf(ConfigDialect::kMegatron, {{"language_model.num_layers", "3"},
                                                            {"model_parallel.tensor_model_parallel_size", "2"}});
  EXPECT_EQ(run.Number("num_layers"), 3);
  EXPECT_EQ(run.Number("model_parallel"), 2);
}

}  // namespace
}  // namespace msprobe
