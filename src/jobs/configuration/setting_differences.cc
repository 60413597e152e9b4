#include "jobs/configuration/setting_differences.h"

#include <algorithm>
#include <array>
#include <map>

#include "base/text.h"
#include "checks/rule_tests.h"
#include "config/secrets.h"
#include "config/stack/stacks.h"

namespace msprobe {
namespace {

constexpr size_t kMostDifferences = 2'000;

/// Settings from which rules compute by themselves.
constexpr std::array<std::string_view, 20> kComputed{"group_query_attention",
                                                     "swiglu",
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
constexpr std::array<std::string_view, 84> kIncidentalWords{
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
    "callback", "callbacks", "micro",    "fused"};

bool IsPath(const std::string& value) {
  return StartsWith(value, "/") || StartsWith(value, "./") || StartsWith(value, "../") || StartsWith(value, "~") ||
         EndsWith(value, ".json") || EndsWith(value, ".yaml");
}

bool IsIncidental(std::string_view key, const std::string& a, const std::string& b) {
  if (IsPath(a) || IsPath(b)) return true;
  std::string word;
  // The probability of stochastic depth is called drop_path.
  const auto number = [](const std::string& value) {
    return !value.empty() && value.find_first_not_of("0123456789.eE+-") == std::string::npos;
  };
  const bool numbers = number(a) && number(b);
  const auto incidental = [&] {
    if (numbers && word == "path") return false;
    return std::find(kIncidentalWords.begin(), kIncidentalWords.end(), word) != kIncidentalWords.end();
  };
  for (const char c : key) {
    if (c == '.' || c == '_' || c == '-' || c == ' ' || c == '/') {
      if (incidental()) return true;
      word.clear();
    } else {
      word += c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    }
  }
  return incidental();
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

/// A flag that is off, what only a run knows, an empty text and no number of anything are what is not set.
bool SaysNothing(const ConfigValue& value) {
  const std::string text = value.Shown();
  return text.empty() || StartsWith(text, "$(") || text == "None" || text == "none" || text == "[]" ||
         value.AsBool() == false;
}

bool ReadBy(const EffectiveRun& run, const std::string& key) {
  const std::string_view plain = StartsWith(key, "env ") ? std::string_view(key).substr(4) : std::string_view(key);
  return run.used().contains(key) || std::find(kComputed.begin(), kComputed.end(), plain) != kComputed.end();
}

/// Files of no stack, and those whose names are only what others have, too.
bool OfOwnProgram(ConfigDialect dialect) {
  return dialect == ConfigDialect::kUnknown || dialect == ConfigDialect::kOwn;
}

/// A setting of an own program that a rule reads, and of which the other side says nothing: no rule can compare it.
bool AloneInOwnProgram(const EffectiveRun& run, const std::string& key, const Told& told, const EffectiveRun& other) {
  const auto read = run.used().find(key);
  return OfOwnProgram(told.dialect) && read != run.used().end() && !read->second.empty() && !other.Find(read->second);
}

bool ReadsSources(const EffectiveRun& run, ConfigDialect dialect) {
  const auto& sources = run.configuration().sources;
  return std::any_of(sources.begin(), sources.end(), [&](const ConfigSource& s) {
    return s.dialect == dialect || (OfOwnProgram(s.dialect) && OfOwnProgram(dialect));
  });
}

/// Keys of own scripts that one side alone has, by the last part of their names: --state-size of a script is
/// model.state_size of a yaml. Of several with one name nothing is said.
std::map<std::string, std::string> OwnByLastPart(const SettingsByKey& settings, const SettingsByKey& others) {
  std::map<std::string, std::string> out;
  for (const auto& [key, told] : settings) {
    if (!OfOwnProgram(told.dialect) || others.contains(key) || StartsWith(key, "env ")) continue;
    const auto [at, fresh] = out.try_emplace(key.substr(key.rfind('.') + 1), key);
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

/// Whether what a side takes for a setting that it does not name is not known: no program of it is here. A flag that is
/// not given is off.
bool StandsAlone(const std::string& key, const Told& told, const EffectiveRun& other) {
  const StackKind* stack = FindStack(told.dialect);
  const bool unlisted = OfOwnProgram(told.dialect) || (stack && stack->base == ConfigDialect::kOwn);
  if (!unlisted || StartsWith(key, "env ") || told.setting->value.AsBool() == true) return false;
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
      const bool comparable = ReadsSources(golden, own.dialect);
      const bool unread = !ReadBy(target, key) || AloneInOwnProgram(target, key, own, golden);
      if (comparable && unread && !SaysNothing(own.setting->value)) {
        Add(key, own.setting, nullptr, &out, StandsAlone(key, own, golden));
      }
    } else if (!(ReadBy(target, key) && ReadBy(golden, OwnKey(key, other->second))) &&
               !rule_tests::Same(own.setting->value, other->second.setting->value)) {
      Add(key, own.setting, other->second.setting, &out);
    }
  }
  for (const auto& [key, own] : right) {
    const bool comparable = !left.contains(key) && ReadsSources(target, own.dialect);
    const bool unread = !ReadBy(golden, key) || AloneInOwnProgram(golden, key, own, target);
    if (comparable && unread && !SaysNothing(own.setting->value)) {
      Add(key, nullptr, own.setting, &out, StandsAlone(key, own, target));
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
