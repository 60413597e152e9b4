#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/text.h"
#include "base/yaml.h"
#include "config/log_settings.h"
#include "config/python_literal.h"
#include "config/read_configuration.h"

namespace msprobe {
namespace {

class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / ("readers_" + std::to_string(getpid()))) {
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string Write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name) << text;
    return (path_ / name).string();
  }

 private:
  std::filesystem::path path_;
};

std::string ErrorOf(const Status& status) { return status.message(); }

std::string Shown(const Configuration& configuration, std::string_view key) {
  for (const ConfigSource& source : configuration.sources) {
    if (const Setting* found = source.Find(key)) return found->value.Shown();
  }
  return "nothing";
}

TEST(ReadConfiguration, YamlWithAliasesMergesAndTypes) {
  Folder folder;
  const auto read = ReadConfiguration({folder.Write(
      "a.yaml", "base: &base\n  lr: 1.0e-5\n  on: yes\nmodel:\n  <<: *base\n  lr: 2\n  list: [1, x]\nref: *base\n")});
  ASSERT_TRUE(read.ok()) << ErrorOf(read.status());
  EXPECT_EQ(Shown(*read, "model.lr"), "2");
  EXPECT_EQ(Shown(*read, "ref.lr"), "1e-05");
  EXPECT_EQ(Shown(*read, "model.list"), "[1, 'x']");
  EXPECT_EQ(read->sources[0].Find("model.lr")->line, 6);
}

TEST(ReadConfiguration, AliasesCountAsIfTheyWereWrittenOut) {
  std::string laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    laughs += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before;
    for (int k = 1; k < 10; ++k) laughs += ", " + before;
    laughs += "]\n";
  }
  EXPECT_FALSE(ParseYaml(laughs, "a.yaml", {.aliases = true}).ok());
  EXPECT_FALSE(ParseYaml("a: &a [*a]\n", "a.yaml", {.aliases = true}).ok());
  EXPECT_FALSE(ParseYaml("a: &a 1\nb: *a\n", "a.yaml").ok());
}

TEST(ReadConfiguration, HydraReferencesAndTheLastOverrideCounts) {
  Folder folder;
  const auto read = ReadConfiguration({folder.Write(
      "a.sh",
      "python3 -m verl.trainer.main_ppo actor_rollout_ref.actor.lr=1e-6 data.n=${actor_rollout_ref.actor.lr} "
      "actor_rollout_ref.actor.lr=2e-6\n")});
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(Shown(*read, "actor_rollout_ref.actor.lr"), "2e-06");
  EXPECT_EQ(read->sources[0].dialect, ConfigDialect::kVerl);
  std::vector<Setting> circle = {{"a", ConfigValue::Of("${b}"), "", 0}, {"b", ConfigValue::Of("${a}"), "", 0}};
  ResolveReferences(&circle);
  EXPECT_TRUE(StartsWith(circle[0].value.Shown(), "${"));
}

TEST(ReadConfiguration, AScriptNamesItsYamlAndArgumentsOverrideIt) {
  Folder folder;
  folder.Write("model.yaml", "model:\n  model_config:\n    num_layers: 2\nseed: 1\n");
  const auto read = ReadConfiguration(
      {folder.Write("a.sh", "msrun --worker_num 8 run_mindformer.py --config model.yaml --seed 3\n")});
  ASSERT_TRUE(read.ok());
  ASSERT_EQ(read->sources.size(), 2u);
  EXPECT_EQ(Shown(*read, "model.model_config.num_layers"), "2");
  EXPECT_EQ(read->sources[1].Find("seed")->value.Shown(), "3");
  EXPECT_EQ(read->launcher.size(), 1u);
}

TEST(ReadConfiguration, DialectsByTheirKeys) {
  Folder folder;
  const auto read = ReadConfiguration(
      {folder.Write(
           "config.json",
           R"({"model_type": "llama", "num_hidden_layers": 2, "vocab_size": 8, "rope_scaling": {"factor": 4.0}})"),
       folder.Write("ds.json", R"({"train_micro_batch_size_per_gpu": "auto", "zero_optimization": {"stage": 2}})"),
       folder.Write("own.yaml",
                    "model:\n  width: 4\ntraining:\n  adam_epsilon: 1e-6\n  max_grad_norm: 1.0\n"
                    "  lr_scheduler_type: cosine\n"),
       folder.Write(
           "neox.json",
           R"({"architectures": ["GPTNeoXForCausalLM"], "model_type": "gpt_neox", "rotary_emb_base": 10000})")});
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->sources[0].dialect, ConfigDialect::kHfModel);
  EXPECT_EQ(read->sources[1].dialect, ConfigDialect::kDeepSpeed);
  EXPECT_EQ(read->sources[2].dialect, ConfigDialect::kHfTrainer) << "a section of the user's own";
  EXPECT_EQ(read->sources[3].dialect, ConfigDialect::kHfModel) << "not the yaml of GPT-NeoX";
  EXPECT_EQ(Shown(*read, "rope_scaling.factor"), "4.0");
}

ConfigDialect DialectOf(std::initializer_list<const char*> keys) {
  std::vector<Setting> settings;
  for (const char* key : keys) settings.push_back({key, ConfigValue::Of(int64_t{1}), "a.yaml", 1});
  return GuessDialect(settings);
}

TEST(ReadConfiguration, AStackIsToldBySeveralKeysOfItsOwn) {
  // One key, and sections that several stacks have, tell nothing.
  EXPECT_EQ(DialectOf({"model.model_config.hidden_size", "model.model_config.num_hidden_layers", "optimizer.clip_grad",
                       "tokens.sequence_length", "parallelism.dp", "parallelism.tp", "parallelism.pp"}),
            ConfigDialect::kUnknown);
  EXPECT_EQ(DialectOf({"sequence_len", "lr", "layers"}), ConfigDialect::kUnknown);
  EXPECT_EQ(DialectOf({"micro_batch_size", "num_layers", "hidden_size", "seq_length", "adam_beta2"}),
            ConfigDialect::kUnknown)
      << "what many call so is not Megatron";
  EXPECT_EQ(DialectOf({"learning_rate", "gradient_accumulation_steps", "bf16", "weight_decay"}),
            ConfigDialect::kUnknown);
  EXPECT_EQ(DialectOf({"model_type", "hidden_size", "num_attention_heads", "vocab_size", "learning_rate"}),
            ConfigDialect::kUnknown)
      << "a model's own file has no learning rate";
  // Of two that have much in common the one that has twice as much to itself.
  EXPECT_EQ(DialectOf({"scheduler.t_warmup", "scheduler.alpha_f", "device_train_microbatch_size", "max_duration",
                       "model.mlp_ratio", "model.weight_tying", "scheduler.units"}),
            ConfigDialect::kOlmo);
  EXPECT_EQ(DialectOf({"scheduler.t_warmup", "scheduler.alpha_f", "device_train_microbatch_size", "max_duration",
                       "model.attn_config.attn_type", "algorithms.gradient_clipping.clipping_threshold"}),
            ConfigDialect::kLlmFoundry);
  EXPECT_EQ(DialectOf({"scheduler.t_warmup", "device_train_microbatch_size", "max_duration"}), ConfigDialect::kUnknown);
  EXPECT_EQ(DialectOf({"runner_config.epochs", "runner_wrapper.type", "parallel_config.model_parallel"}),
            ConfigDialect::kMindFormers);
  EXPECT_EQ(DialectOfProgram("overlay.py"), ConfigDialect::kUnknown);
  EXPECT_EQ(DialectOfProgram("ctrl.train"), ConfigDialect::kUnknown);
  EXPECT_EQ(DialectOfProgram("verl.trainer.main_ppo"), ConfigDialect::kVerl);
}

TEST(ReadConfiguration, OverridesBehindACommandAndScriptsByTheirFirstLine) {
  Folder folder;
  folder.Write("base.yaml", "SOLVER:\n  GAMMA: 0.1\n  BASE_LR: 0.3\n");
  folder.Write("net.yaml", "_BASE_: base.yaml\nSOLVER:\n  BASE_LR: 0.02\n");
  const auto read = ReadConfiguration({folder.Write(
      "job", "#!/usr/bin/env bash\npython train_net.py --config-file net.yaml SOLVER.BASE_LR 0.01 OUTPUT_DIR out\n")});
  ASSERT_TRUE(read.ok()) << ErrorOf(read.status());
  EXPECT_EQ(read->sources.back().Find("SOLVER.BASE_LR")->value.Shown(), "0.01");
  EXPECT_EQ(Shown(*read, "SOLVER.BASE_LR"), "0.02") << "of the file, which the command overrides";
  EXPECT_EQ(Shown(*read, "SOLVER.GAMMA"), "0.1");
  EXPECT_EQ(Shown(*read, "OUTPUT_DIR"), "out");
  EXPECT_TRUE(read->unread.empty());
  folder.Write("lone.yaml", "_BASE_: ../gone.yaml\nSOLVER:\n  BASE_LR: 0.02\n");
  const auto lone = ReadConfiguration({folder.Write("a.sbatch", "srun python train_net.py --config-file lone.yaml\n")});
  ASSERT_TRUE(lone.ok()) << ErrorOf(lone.status());
  EXPECT_EQ(lone->unread, std::vector<std::string>{"../gone.yaml"});
  folder.Write("round.yaml", "_BASE_: [back.yaml, back.yaml]\nSEED: 1\n");
  folder.Write("back.yaml", "_BASE_: [round.yaml, round.yaml]\n");
  const auto round = ReadConfiguration({folder.Write("c.sh", "python train_net.py --config-file round.yaml\n")});
  ASSERT_TRUE(round.ok()) << ErrorOf(round.status());
  EXPECT_EQ(round->unread.size(), 4) << "files that begin with each other are read once each";
  const auto command = ReadConfiguration({folder.Write("b.sh", "my-train --lr 0.1 --steps 5\n")});
  ASSERT_TRUE(command.ok());
  EXPECT_EQ(Shown(*command, "lr"), "0.1");
}

TEST(ReadConfiguration, ScriptsInsideOfJobs) {
  Folder folder;
  const auto sky = ReadConfiguration({folder.Write("sky.yaml",
                                                   "name: job\nresources:\n  accelerators: H100:4\nenvs:\n"
                                                   "  NCCL_ALGO: Ring\nrun: |\n  torchrun --nproc_per_node "
                                                   "$SKYPILOT_NUM_GPUS_PER_NODE train.py --lr 1e-4 \\\n"
                                                   "    --seed 7\n")});
  ASSERT_TRUE(sky.ok()) << ErrorOf(sky.status());
  EXPECT_EQ(Shown(*sky, "seed"), "7");
  ASSERT_EQ(sky->launcher.size(), 1U);
  EXPECT_EQ(sky->launcher[0].value.Shown(), "4");
  ASSERT_EQ(sky->environment.size(), 1U);
  EXPECT_EQ(sky->environment[0].key, "NCCL_ALGO");
  EXPECT_EQ(sky->sources.back().Find("seed")->line, 8);
  const auto pod = ReadConfiguration(
      {folder.Write("pod.yaml",
                    "spec:\n  containers:\n  - name: a\n    command: [\"python\", \"train.py\"]\n    args: [\"--lr\", "
                    "\"0.5\"]\n    env:\n    - name: HCCL_DETERMINISTIC\n      value: \"true\"\n")});
  ASSERT_TRUE(pod.ok()) << ErrorOf(pod.status());
  EXPECT_EQ(Shown(*pod, "lr"), "0.5");
  ASSERT_EQ(pod->environment.size(), 1U);
  EXPECT_EQ(pod->environment[0].value.Shown(), "true");
  const auto compose = ReadConfiguration(
      {folder.Write("compose.yaml",
                    "services:\n  t:\n    environment: [A=1]\n    command: bash -c \"python train.py --lr 0.25\"\n")});
  ASSERT_TRUE(compose.ok()) << ErrorOf(compose.status());
  EXPECT_EQ(Shown(*compose, "lr"), "0.25");
}

TEST(ReadConfiguration, BadFilesGetOneLine) {
  Folder folder;
  EXPECT_NE(ErrorOf(ReadConfiguration({"/absent/a.sh"}).status()).find("does not exist"), std::string::npos);
  EXPECT_NE(ErrorOf(ReadConfiguration({folder.Write("a.bin", "x")}).status()).find("no known ending"),
            std::string::npos);
  EXPECT_NE(ErrorOf(ReadConfiguration({folder.Write("a.json", "[1]")}).status()).find("not a JSON object"),
            std::string::npos);
  EXPECT_NE(ErrorOf(ReadConfiguration({folder.Write("a.log", "step 1 loss 2.0\n")}).status())
                .find("no configuration that is known"),
            std::string::npos);
  const std::string large(100 << 20, 'a');
  for (const std::string name : {"large.yaml", "large.json", "large.sh"}) {
    const auto read = ReadConfiguration({folder.Write(name, large)});
    ASSERT_FALSE(read.ok());
    EXPECT_NE(ErrorOf(read.status()).find("104857600 bytes"), std::string::npos) << ErrorOf(read.status());
  }
}

TEST(LogSettings, ArgumentsOfMegatron) {
  const std::string log =
      "noise\n[rank0]: ------ arguments ------\n[rank0]:   adam_beta1 .......... 0.9\n[rank0]:   bf16 ......... True\n"
      "  num_layers ...... 4\n  path .......... /a b\n------ end of arguments ------\nrest ........ 1\n";
  const auto list = ReadArgumentList(log, "a.log");
  ASSERT_TRUE(list.ok()) << ErrorOf(list.status());
  ASSERT_EQ(list->members.size(), 4u);
  EXPECT_EQ(list->members[0].second.Shown(), "0.9");
  EXPECT_EQ(list->members[3].second.Shown(), "/a b");
  EXPECT_FALSE(ReadArgumentList("------ arguments ------\n a .. 1\n", "a.log").ok());
  EXPECT_FALSE(ReadArgumentList("nothing\n", "a.log").ok());
  EXPECT_FALSE(ReadArgumentList("--- arguments ---\nx\n--- end of arguments ---\n", "a.log").ok());
}

TEST(LogSettings, TheDictOfVerlBetweenLinesOfOthers) {
  const std::string log =
      "(A pid=1) {'actor_rollout_ref': {'x': 1}}\n(T pid=2) {'actor_rollout_ref': {'lr': 1e-06,\n(W pid=3) warning: "
      "'x': 1\n"
      "(T pid=2)  'name': \"it's\", 'none': None},\n(T pid=2)  'n': [1, 'a']}\n(T pid=2) step 1\n";
  const auto config = ReadVerlConfig(log, "a.log");
  ASSERT_TRUE(config.ok()) << ErrorOf(config.status());
  std::string text;
  config->AppendRepr(&text);
  EXPECT_EQ(text, "{'actor_rollout_ref': {'lr': 1e-06, 'name': \"it's\", 'none': None}, 'n': [1, 'a']}");
  EXPECT_FALSE(ReadVerlConfig("{'actor_rollout_ref': {'lr': 1", "a.log").ok());
  EXPECT_FALSE(ReadVerlConfig("nothing", "a.log").ok());
}

TEST(LogSettings, TrainingArgumentsAndNamespaces) {
  const auto read = ReadLogSettings(
      "INFO TrainingArguments(\nadam_beta2=0.95,\nfsdp=[],\nlr_scheduler_type=SchedulerType.COSINE,\n)\n", "a.log");
  ASSERT_TRUE(read.ok()) << ErrorOf(read.status());
  EXPECT_EQ((*read)[0].Find("adam_beta2")->value.Shown(), "0.95");
  EXPECT_EQ((*read)[0].dialect, ConfigDialect::kHfTrainer);
}

TEST(LogSettings, GroupsOfAnOptimizerAndTheWorldSize) {
  const auto read = ReadLogSettings(
      "using world size: 8, data-parallel size: 4, x\n0: AdamW (\nParameter Group 0\n    betas: (0.9, 0.95)\n"
      "    weight_decay: 0.1\n\nParameter Group 1\n    weight_decay: 0.0\n)\nstep: 1\n",
      "a.log");
  ASSERT_TRUE(read.ok()) << ErrorOf(read.status());
  ASSERT_EQ(read->size(), 2u);
  EXPECT_EQ((*read)[0].Find("type")->value.Shown(), "AdamW");
  EXPECT_EQ((*read)[0].Find("groups.0.betas")->value.Shown(), "[0.9, 0.95]");
  EXPECT_EQ((*read)[0].Find("groups.1.weight_decay")->value.Shown(), "0.0");
  EXPECT_EQ((*read)[0].settings.size(), 4u);
  EXPECT_EQ((*read)[1].Find("data_parallel_size")->value.Shown(), "4");
}

TEST(PythonLiteral, IsBounded) {
  size_t end = 0;
  EXPECT_FALSE(ParsePythonLiteral(std::string(100'000, '['), "x", &end).ok());
  EXPECT_FALSE(ParsePythonLiteral("{'a': 'b", "x", &end).ok());
  const auto value = ParsePythonLiteral("{1: <Kind.A: 'a'>, 'b': call(1, [2]), 'c': (1,)} rest", "x", &end);
  ASSERT_TRUE(value.ok()) << ErrorOf(value.status());
  EXPECT_EQ(value->members[1].second.Shown(), "call(1, [2])");
  EXPECT_EQ(end, 48u);
}

}  // namespace
}  // namespace msprobe
