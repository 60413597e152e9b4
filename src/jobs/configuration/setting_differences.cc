#include "jobs/configuration/setting_differences.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include "base/text.h"
#include "checks/rule_tests.h"
#include "config/stack/stacks.h"
#include "jobs/configuration/secrets.h"

namespace msprobe {
namespace {

constexpr size_t kMostDifferences = 2'000;

/// Settings from which rules compute by themselves.
constexpr std::array<std::string_view, 21> kComputed{"group_query_attention",
                                                     "swiglu",
                                                     "gated_linear_unit",
                                                     "squared_relu",
                                                     "use_rotary_position_embeddings",
                                                     "moe_router_load_balancing_type",
                                                     "make_vocab_size_divisible_by",
                                                     "padded_vocab_size",
                                                     "moe_shared_expert_intermediate_size",
                                                     "runner_wrapper.scale_sense.type",
                                                     "use_sliding_window",
                                                     "multi_query",
                                                     "trainer.devices",
                                                     "trainer.num_nodes",
                                                     "trainer.n_gpus_per_node",
                                                     "trainer.nnodes",
                                                     "actor_num_gpus_per_node",
                                                     "actor_num_nodes",
                                                     "HCCL_DETERMINISTIC",
                                                     "ASCEND_LAUNCH_BLOCKING",
                                                     "MS_ASCEND_CHECK_OVERFLOW_MODE"};

/// Parts of names of what no training computes with.
constexpr std::array<std::string_view, 88> kIncidentalWords{
    "path",     "paths",     "dir",      "directory", "folder",        "save",        "saves",      "saving",
    "output",   "out",       "outputs",  "log",       "logs",          "logging",     "logger",     "name",
    "names",    "project",   "port",     "file",      "files",         "tensorboard", "wandb",      "mlflow",
    "swanlab",  "report",    "interval", "eval",      "evaluation",    "val",         "valid",      "validation",
    "test",     "exit",      "addr",     "address",   "host",          "hostname",    "master",     "rank",
    "url",      "endpoint",  "timeout",  "threads",   "workers",       "proc",        "verbose",    "verbosity",
    "profile",  "profiling", "profiler", "metrics",   "checkpointing", "recompute",   "checkpoint", "activations",
    "offload",  "overlap",   "bucket",   "prefetch",  "pin",           "cache",       "overwrite",  "resume",
    "memory",   "hub",       "push",     "config",    "prefix",        "description", "debug",      "level",
    "visible",  "ifname",    "home",     "alloc",     "connections",   "print",       "version",    "freq",
    "callback", "callbacks", "micro",    "fused",     "checkpoints",   "monitor",     "nnodes",     "nproc"};

struct UsualSetting {
  ConfigDialect dialect;
  std::string_view name, value;
};

constexpr UsualSetting kUsual[] = {
#define MSP_USUAL(dialect, name, value) {ConfigDialect::dialect, name, value},
#include "jobs/configuration/usual_settings.def"
#undef MSP_USUAL
};

/// In small letters.
std::vector<std::string> Words(std::string_view key) {
  std::vector<std::string> out{""};
  for (const char c : key) {
    if (c == '.' || c == '_' || c == '-' || c == ' ' || c == '/') {
      out.emplace_back();
    } else {
      out.back() += c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    }
  }
  return out;
}

bool IsPath(const std::string& value) {
  return StartsWith(value, "/") || StartsWith(value, "./") || StartsWith(value, "../") || StartsWith(value, "~") ||
         EndsWith(value, ".json") || EndsWith(value, ".yaml");
}

bool IsIncidental(std::string_view key, const std::string& a, const std::string& b) {
  if (IsPath(a) || IsPath(b)) return true;
  // The probability of stochastic depth is called drop_path.
  const auto number = [](const std::string& value) {
    return !value.empty() && value.find_first_not_of("0123456789.eE+-") == std::string::npos;
  };
  const bool numbers = number(a) && number(b);
  const std::vector<std::string> words = Words(key);
  return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
    if (numbers && word == "path") return false;
    if (StartsWith(key, "env ") && word == "config") return false;  // CUBLAS_WORKSPACE_CONFIG
    return std::find(kIncidentalWords.begin(), kIncidentalWords.end(), word) != kIncidentalWords.end();
  });
}

struct Told {
  const Setting* setting;
  ConfigDialect dialect;
};
using SettingsByKey = std::map<std::string, Told>;

SettingsByKey SettingsOf(const EffectiveRun& run) {
  SettingsByKey out;
  for (const ConfigSource& source : run.configuration().sources) {
    if (source.dialect == ConfigDialect::kTokenizer || source.dialect == ConfigDialect::kTorchLog) continue;
    for (const Setting& setting : source.settings) {
      if (!setting.value.IsNull()) out[setting.key] = {&setting, source.dialect};
    }
  }
  for (const Setting& variable : run.configuration().environment) {
    if (IsTrainingVariable(variable.key)) out["env " + variable.key] = {&variable, ConfigDialect::kUnknown};
  }
  return out;
}

/// One of a number of parts, and times one.
bool CountsParts(std::string_view key) {
  for (const std::string& word : Words(key)) {
    for (const std::string_view part :
         {"size",     "degree", "parallel", "factor",  "scale",  "multiplier", "mult",   "ratio",   "steps",
          "interval", "every",  "repeat",   "repeats", "num",    "n",          "tp",     "pp",      "cp",
          "ep",       "times",  "count",    "stages",  "chunks", "splits",     "groups", "replicas"}) {
      if (word == part) return true;
    }
  }
  return false;
}

/// A flag that is off, what only a run knows, an empty text, no number of anything, one part of it and what the stack
/// takes by itself are what is not set.
bool SaysNothing(const std::string& key, const Told& told) {
  const ConfigValue& value = told.setting->value;
  const std::string text = value.Shown();
  const auto number = value.AsNumber();
  if (text.empty() || StartsWith(text, "$(") || text == "None" || text == "none" || text == "null" || text == "[]" ||
      value.AsBool() == false || number == 0.0) {
    return true;
  }
  if (number == 1.0 && CountsParts(key)) return true;
  return std::any_of(std::begin(kUsual), std::end(kUsual), [&](const UsualSetting& one) {
    return one.dialect == told.dialect && one.value == text && key.substr(key.rfind('.') + 1) == one.name;
  });
}

bool ReadBy(const EffectiveRun& run, const std::string& key) {
  const std::string_view plain = StartsWith(key, "env ") ? std::string_view(key).substr(4) : std::string_view(key);
  const std::string_view last = plain.substr(plain.rfind('.') + 1);  // of a section of a yaml of Megatron
  return run.used().contains(key) || std::any_of(kComputed.begin(), kComputed.end(),
                                                 [&](std::string_view one) { return one == plain || one == last; });
}

/// Files of no stack, and those whose names are only what others have, too.
bool OfOwnProgram(ConfigDialect dialect) {
  return dialect == ConfigDialect::kUnknown || dialect == ConfigDialect::kOwn;
}

/// Those that have the same settings as options and in the sections of a file.
bool HasSections(ConfigDialect dialect) {
  const StackKind* stack = FindStack(dialect);
  return OfOwnProgram(dialect) || (stack && stack->base == ConfigDialect::kOwn);
}

/// What a rule compares in the place of what settings of other names say.
struct ComparedAs {
  std::string_view read, compared;
};
constexpr ComparedAs kComparedAs[] = {
    {"compute_dtype", "precision"},     {"use_bf16", "precision"},         {"use_fp16", "precision"},
    {"use_amp", "precision"},           {"warmup_steps", "warmup"},        {"warmup_ratio", "warmup"},
    {"warmup_epochs", "warmup"},        {"warmup_tokens", "warmup"},       {"warmup_steps", "warmup_share"},
    {"warmup_ratio", "warmup_share"},   {"warmup_epochs", "warmup_share"}, {"micro_batch", "global_batch"},
    {"plain_batch", "global_batch"},    {"accumulation", "global_batch"},  {"batch_tokens", "global_batch"},
    {"min_lr_ratio", "min_lr"},         {"decay_steps", "decay_end"},      {"train_steps", "decay_end"},
    {"train_epochs", "decay_end"},      {"lr_schedule", "schedule"},       {"optimizer", "optimizer_kind"},
    {"ffn_ratio", "intermediate_size"}, {"vocab_size", "padded_vocab"},    {"use_rmsnorm", "normalization"},
    {"finetuning", "adapter"},          {"world_size", "data_parallel"}};

/// A setting of an own program that a rule reads, and of which the other side says nothing: no rule can compare it.
bool AloneInOwnProgram(const EffectiveRun& run, const std::string& key, const Told& told, const EffectiveRun& other) {
  const auto read = run.used().find(key);
  if (!OfOwnProgram(told.dialect) || read == run.used().end() || read->second.empty()) return false;
  return !other.Find(read->second) &&
         std::none_of(std::begin(kComparedAs), std::end(kComparedAs), [&](const ComparedAs& one) {
           return one.read == read->second && run.Find(one.compared) && other.Find(one.compared);
         });
}

bool ReadsSources(const EffectiveRun& run, ConfigDialect dialect) {
  const auto& sources = run.configuration().sources;
  return std::any_of(sources.begin(), sources.end(), [&](const ConfigSource& s) {
    return s.dialect == dialect || (OfOwnProgram(s.dialect) && OfOwnProgram(dialect));
  });
}

/// Whether a variable that is not there is not set: a script of the side is here, or a job that has an environment.
bool ReadsEnvironment(const EffectiveRun& run) {
  return !run.configuration().environment.empty() || !run.configuration().launcher.empty();
}

bool MayBeCompared(const std::string& key, const Told& told, const EffectiveRun& other) {
  return StartsWith(key, "env ") ? ReadsEnvironment(other) || ReadsSources(other, told.dialect)
                                 : ReadsSources(other, told.dialect);
}

/// Keys of own scripts that one side alone has, by the last part of their names: --state-size of a script is
/// model.state_size of a yaml. Of several with one name nothing is said.
std::map<std::string, std::string> OwnByLastPart(const SettingsByKey& settings, const SettingsByKey& others) {
  std::map<std::string, std::string> out;
  for (const auto& [key, told] : settings) {
    if (!HasSections(told.dialect) || others.contains(key) || StartsWith(key, "env ")) continue;
    std::string last = key.substr(key.rfind('.') + 1);
    for (char& c : last) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    const auto [at, fresh] = out.try_emplace(last, key);
    if (!fresh) at->second.clear();
  }
  return out;
}

/// The name of a setting on its own side.
std::string OwnKey(const std::string& key, const Told& told) {
  return StartsWith(key, "env ") ? key : told.setting->key;
}

/// Golden settings under the names that the target has for them.
SettingsByKey Renamed(const SettingsByKey& target, const SettingsByKey& golden) {
  SettingsByKey out = golden;
  const auto left = OwnByLastPart(target, golden), right = OwnByLastPart(golden, target);
  for (const auto& [name, key] : left) {
    const auto other = right.find(name);
    if (key.empty() || other == right.end() || other->second.empty()) continue;
    out[key] = out.at(other->second);
    out.erase(other->second);
  }
  return out;
}

void Add(const std::string& key, const Setting* a, const Setting* b, std::vector<SettingDifference>* out,
         bool alone = false) {
  SettingDifference one{key, {}, {}, {}, {}};
  if (a) one.target = a->value.Shown(), one.target_origin = a->Origin();
  if (b) one.golden = b->value.Shown(), one.golden_origin = b->Origin();
  if (IsSecret(key, one.target) || IsSecret(key, one.golden)) return;
  one.incidental = IsIncidental(key, one.target, one.golden);
  one.alone = alone && !one.incidental;
  out->push_back(std::move(one));
}

/// Whether both sides name the programs that train, and these are others.
bool OtherPrograms(const EffectiveRun& a, const EffectiveRun& b) {
  const std::vector<std::string>&left = a.configuration().programs, &right = b.configuration().programs;
  return !left.empty() && !right.empty() && std::ranges::none_of(left, [&](const std::string& name) {
    return std::ranges::find(right, name) != right.end();
  });
}

/// What the Trainer itself takes, whichever program starts it.
bool IsOfTrainer(std::string_view key) {
  for (const std::string_view one :
       {"group_by_length", "dataloader_drop_last", "tf32", "torch_compile", "average_tokens_across_devices",
        "optim_args", "adafactor", "optim_target_modules", "use_liger_kernel", "label_names", "accelerator_config",
        "bf16_full_eval", "fp16_opt_level", "half_precision_backend", "split_batches", "dispatch_batches"}) {
    if (key == one) return true;
  }
  return StartsWith(key, "lr_scheduler_kwargs");
}

/// Whether what a side takes for a setting that it does not name is not known: no program of it is here, or it has
/// another one. A flag that is not given is off. What a machine needs of variables differs between machines.
bool StandsAlone(const std::string& key, const Told& told, const EffectiveRun& run, const EffectiveRun& other) {
  if (StartsWith(key, "env ")) return true;
  const StackKind* stack = FindStack(told.dialect);
  const bool unlisted = OfOwnProgram(told.dialect) || (stack && stack->base == ConfigDialect::kOwn);
  const bool others = OtherPrograms(run, other);
  if (others && told.dialect == ConfigDialect::kHfTrainer) return !IsOfTrainer(key);
  if (!unlisted) return false;
  if (others) return true;
  if (told.setting->value.AsBool() == true) return false;
  const auto& sources = other.configuration().sources;
  return std::none_of(sources.begin(), sources.end(), [](const ConfigSource& s) { return EndsWith(s.path, ".py"); });
}

}  // namespace

std::vector<SettingDifference> DifferentSettings(const EffectiveRun& target, const EffectiveRun& golden) {
  std::vector<SettingDifference> out;
  const SettingsByKey left = SettingsOf(target), right = Renamed(left, SettingsOf(golden));
  for (const auto& [key, own] : left) {
    const auto other = right.find(key);
    if (other == right.end()) {
      const bool comparable = MayBeCompared(key, own, golden);
      const bool unread = !ReadBy(target, key) || AloneInOwnProgram(target, key, own, golden);
      if (comparable && unread && !SaysNothing(key, own)) {
        Add(key, own.setting, nullptr, &out, StandsAlone(key, own, target, golden));
      }
    } else if (!(ReadBy(target, key) && ReadBy(golden, OwnKey(key, other->second))) &&
               !rule_tests::Same(own.setting->value, other->second.setting->value)) {
      Add(key, own.setting, other->second.setting, &out);
    }
  }
  for (const auto& [key, own] : right) {
    const bool comparable = !left.contains(key) && MayBeCompared(key, own, target);
    const bool unread = !ReadBy(golden, key) || AloneInOwnProgram(golden, key, own, target);
    if (comparable && unread && !SaysNothing(key, own)) {
      Add(key, nullptr, own.setting, &out, StandsAlone(key, own, golden, target));
    }
  }
  std::stable_sort(out.begin(), out.end(), [](const auto& x, const auto& y) { return x.incidental < y.incidental; });
  if (out.size() > kMostDifferences) out.resize(kMostDifferences);
  return out;
}

AloneSettings AloneOf(const std::vector<SettingDifference>& settings) {
  AloneSettings out;
  for (const SettingDifference& one : settings) {
    if (!one.alone) continue;
    std::string& side = one.target.empty() ? out.golden : out.target;
    side += (side.empty() ? "" : ", ") + one.key + " " + (one.target.empty() ? one.golden : one.target);
  }
  return out;
}

}  // namespace msprobe
