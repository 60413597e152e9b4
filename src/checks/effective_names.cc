// What the files of a run set, by the names and defaults of their stacks.
#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>

#include "base/text.h"
#include "checks/effective.h"
#include "config/shell_values.h"
#include "config/stack/stacks.h"

namespace msprobe {
namespace {

struct QuantityNames {
  std::string_view id;
  std::array<std::string_view, 6> keys;  // by dialect from kMegatron on
};

constexpr QuantityNames kQuantities[] = {
#define MSP_QUANTITY(id, megatron, mindformers, hf_model, hf_trainer, deepspeed, verl) \
  {#id, {megatron, mindformers, hf_model, hf_trainer, deepspeed, verl}},
#include "checks/quantities.def"
#undef MSP_QUANTITY
};

struct StackName {
  ConfigDialect dialect;
  std::string_view id, keys;
};

constexpr StackName kNames[] = {
#define MSP_NAME(dialect, id, keys) {ConfigDialect::dialect, #id, keys},
#include "checks/more_stack_names.def"
#include "checks/program_names.def"
#include "checks/stack_names.def"
#undef MSP_NAME
};

struct CommonName {
  std::string_view id, keys;
};

constexpr CommonName kCommonNames[] = {
#define MSP_COMMON(id, keys) {#id, keys},
#include "checks/common_names.def"
#undef MSP_COMMON
};

/// What a dialect names quantities, those of the stack that it builds on included.
std::map<std::string_view, std::string> NamesOf(
    ConfigDialect dialect) {  // NOLINT(misc-no-recursion): a stack builds on one that builds on none
  std::map<std::string_view, std::string> out;
  if (const StackKind* stack = FindStack(dialect)) out = NamesOf(stack->base);
  const size_t column = static_cast<size_t>(dialect);
  for (const QuantityNames& quantity : kQuantities) {
    if (column == 0 || column > quantity.keys.size()) break;
    if (!quantity.keys[column - 1].empty()) out[quantity.id] = quantity.keys[column - 1];
  }
  for (const StackName& name : kNames) {
    if (name.dialect != dialect) continue;
    std::string& keys = out[name.id];
    // What a program of Lightning adds to the sections of its trainer has any name.
    const bool more = dialect == ConfigDialect::kLightning && !keys.empty() && name.keys != "-";
    keys = more ? std::string(name.keys) + "|" + keys : std::string(name.keys);
  }
  if (dialect == ConfigDialect::kOwn) {
    for (const CommonName& name : kCommonNames) out[name.id] = name.keys;
  }
  return out;
}

constexpr size_t kMostOwnSettings = 4096, kFewestOwnNames = 2;

/// Whether a stack calls things as programs of one's own do, where it has no name of its own for them.
bool NamesAsOthers(ConfigDialect dialect) {
  const StackKind* stack = FindStack(dialect);
  return dialect == ConfigDialect::kOwn || (stack && stack->base == ConfigDialect::kOwn);
}

char Plain(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c == '-' ? '_' : c; }

bool SameName(std::string_view a, std::string_view b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) { return Plain(x) == y; });
}

/// Sections of what is not trained, or not what is asked for.
bool OfAnotherPart(std::string_view key) {
  const size_t dot = key.rfind('.');
  if (dot == std::string_view::npos) return false;
  for (const std::string_view part : Split(key.substr(0, dot), '.')) {
    for (const std::string_view other :
         {"critic",      "ref",       "reward",     "reward_model",  "discriminator",  "disc",
          "teacher",     "eval",      "evaluation", "val",           "valid",          "validation",
          "test",        "inference", "generation", "rollout",       "sampling",       "logger",
          "logging",     "wandb",     "vae",        "val_loader",    "val_dataloader", "test_dataloader",
          "eval_loader", "callbacks", "profiler",   "monitor",       "speed_monitor",  "throughput",
          "metrics",     "tracker",   "benchmark",  "early_stopping"}) {
      if (SameName(part, other)) return true;
    }
  }
  return false;
}

/// A quantity of the model, which no section of the data, the optimizer or the schedule sets.
bool IsOfModel(std::string_view id) {
  for (const std::string_view one :
       {"num_layers", "num_heads",     "kv_heads",       "hidden_size", "intermediate_size", "ffn_ratio",
        "head_size",  "normalization", "use_rmsnorm",    "norm_eps",    "attention_dropout", "hidden_dropout",
        "drop_path",  "activation",    "position_code",  "rope_base",   "rotary_share",      "linear_bias",
        "qkv_bias",   "qk_norm",       "sliding_window", "expert_num"}) {
    if (id == one) return true;
  }
  return false;
}

bool OutsideOfModel(std::string_view key) {
  const size_t dot = key.rfind('.');
  if (dot == std::string_view::npos) return false;
  for (const std::string_view part : Split(key.substr(0, dot), '.')) {
    for (const std::string_view other :
         {"data", "dataset", "datasets", "dataloader", "loader", "train_loader", "train_data", "train_dataset",
          "optimizer", "optim", "scheduler", "lr_scheduler", "augmentation", "transforms", "checkpoint", "checkpoints",
          "tokenizer", "ema"}) {
      if (SameName(part, other)) return true;
    }
  }
  return false;
}

/// The setting whose name ends so. Of several that differ the one that stands nearest to the top, if it is alone there.
const Setting* FindCommon(const ConfigSource& source, std::string_view name, std::string_view id) {
  const bool top = StartsWith(name, "=");
  if (top) name.remove_prefix(1);
  std::map<std::string_view, const Setting*> found;
  for (const Setting& setting : source.settings) {
    const std::string_view key = setting.key;
    if (key.size() < name.size()) continue;
    const bool whole = key.size() == name.size();
    if (!whole && (top || key[key.size() - name.size() - 1] != '.')) continue;
    if (!SameName(key.substr(key.size() - name.size()), name) || OfAnotherPart(key)) continue;
    if (IsOfModel(id) && OutsideOfModel(key)) continue;
    found[key] = &setting;
  }
  const Setting* out = nullptr;
  size_t depth = 0;
  bool alone = true;
  for (const auto& [key, setting] : found) {
    const size_t here = static_cast<size_t>(std::count(key.begin(), key.end(), '.'));
    if (!out || here < depth) {
      out = setting;
      depth = here;
      alone = true;
    } else if (here == depth && !(setting->value == out->value)) {
      alone = false;
    }
  }
  return alone ? out : nullptr;
}

struct DefaultValue {
  ConfigDialect dialect;
  std::string_view id, value;
};

constexpr DefaultValue kDefaults[] = {
#define MSP_DEFAULT(dialect, id, value) {ConfigDialect::dialect, #id, value},
#include "checks/defaults.def"
#undef MSP_DEFAULT
};

/// The items of a list, also of one that a shell passes on as a text: "[0.9, 0.95]".
std::vector<ConfigValue> ItemsOf(const ConfigValue& value) {
  if (value.IsList()) return value.items;
  if (!value.IsText() || value.text.size() < 2) return {};
  const bool brackets = value.text[0] == '[' || value.text[0] == '(';
  if (!brackets && !Contains(value.text, ",")) return {};
  std::vector<ConfigValue> out;
  const std::string_view inner = value.text;
  for (std::string_view part : Split(brackets ? inner.substr(1, inner.size() - 2) : inner, ',')) {
    while (StartsWith(part, " ")) part.remove_prefix(1);
    while (EndsWith(part, " ")) part.remove_suffix(1);
    out.push_back(PythonScalar(part));
  }
  return out;
}

/// "key", "!key" (the opposite), "key#1" (the second element), in the source; the value that it gives.
const Setting* LookUp(const ConfigSource& source, std::string_view name, std::string_view id, ConfigValue* out) {
  const bool negated = StartsWith(name, "!");
  if (negated) name.remove_prefix(1);
  const size_t hash = name.find('#');
  const std::string_view key = name.substr(0, hash);
  const Setting* found = NamesAsOthers(source.dialect) ? FindCommon(source, key, id) : source.Find(key);
  if (!found) {  // --no-name
    const Setting* off = source.Find("no_" + std::string(key));
    if (off && off->value.AsBool().value_or(false)) {
      *out = ConfigValue::Of(negated);
      return off;
    }
  }
  // Sections of a yaml behind --yaml-cfg, or of one that an own script reads.
  if (!found && (source.dialect == ConfigDialect::kMegatron || source.dialect == ConfigDialect::kHfTrainer)) {
    const auto same_end = [&](const Setting& s) { return EndsWith(s.key, "." + std::string(key)); };
    const auto last = std::find_if(source.settings.rbegin(), source.settings.rend(), same_end);
    if (last != source.settings.rend()) found = &*last;
  }
  if (!found && source.dialect == ConfigDialect::kHfModel) {  // the part of a model of several that reads text
    for (const std::string_view part :
         {"text_config.", "llm_config.", "language_config.", "thinker_config.text_config."}) {
      if (!found) found = source.Find(std::string(part) + std::string(key));
    }
  }
  if (!found || found->value.IsNull()) return nullptr;
  *out = found->value;
  if (out->IsText() && (out->text == "auto" || out->text == "None")) return nullptr;
  if (hash != std::string_view::npos) {
    const size_t index = static_cast<size_t>(name[hash + 1] - '0');
    const std::vector<ConfigValue> items = ItemsOf(*out);
    if (index >= items.size()) return nullptr;
    *out = items[index];
  } else if (out->IsList() && out->items.size() == 1 && out->items[0].AsNumber()) {
    *out = ConfigValue(out->items[0]);
  }
  if (negated) {
    const std::optional<bool> flag = out->AsBool();
    if (!flag) return nullptr;
    *out = ConfigValue::Of(!*flag);
  }
  return found;
}

/// The number of a text, too, so that 1e-5 of YAML is one.
ConfigValue Typed(const ConfigValue& value) { return value.IsText() ? PythonScalar(value.text) : value; }

}  // namespace

/// Sources of no known stack that call things as others do: read by those names, without defaults.
void EffectiveRun::FindOwnPrograms() {
  std::set<std::string_view> told;
  bool own = false, known = false;
  for (ConfigSource& source : configuration_.sources) {
    own = own || NamesAsOthers(source.dialect);
    known = known || (source.dialect != ConfigDialect::kUnknown && source.dialect != ConfigDialect::kTokenizer);
    if (source.dialect != ConfigDialect::kUnknown || source.settings.size() > kMostOwnSettings) continue;
    source.dialect = ConfigDialect::kOwn;
    for (const auto& [id, keys] : NamesOf(ConfigDialect::kOwn)) {
      for (const std::string_view name : Split(keys, '|')) {
        ConfigValue value;
        if (LookUp(source, name, id, &value)) told.insert(id);
      }
    }
    source.dialect = ConfigDialect::kUnknown;
  }
  if (!own && told.size() < (known ? 1 : kFewestOwnNames)) return;
  for (ConfigSource& source : configuration_.sources) {
    const bool unknown = source.dialect == ConfigDialect::kUnknown && source.settings.size() <= kMostOwnSettings;
    if (unknown && !source.settings.empty()) source.dialect = ConfigDialect::kOwn;
  }
}

/// Keys of the same name with the same value, as anchors of YAML and references leave them.
void EffectiveRun::MarkCopies(const ConfigSource& source, const Setting& read, const std::string& quantity) {
  const auto last = [](const std::string& key) { return std::string_view(key).substr(key.rfind('.') + 1); };
  for (const Setting& setting : source.settings) {
    if (last(setting.key) == last(read.key) && setting.value == read.value)
      used_.insert_or_assign(setting.key, quantity);
  }
}

void EffectiveRun::ReadNamed() {
  for (const ConfigSource& source : configuration_.sources) {
    const bool own = NamesAsOthers(source.dialect);
    for (const auto& [id, keys] : NamesOf(source.dialect)) {
      if (own && id == "clip_grad") {  // None: not clipped
        for (const std::string_view name : Split(keys, '|')) {
          const Setting* none = FindCommon(source, name, id);
          if (none && none->value.IsNull()) Set("clip_grad", ConfigValue::Of(0.0), none->Origin());
        }
      }
      bool set = false;
      for (const std::string_view name : Split(keys, '|')) {
        ConfigValue value;
        const Setting* found = name.empty() ? nullptr : LookUp(source, name, id, &value);
        if (!found) continue;
        used_.insert_or_assign(found->key, std::string(id));
        if (own) MarkCopies(source, *found, std::string(id));
        if (set) continue;
        set = true;
        // What only a run knows is neither a value nor the default.
        const bool open = value.IsText() && IsOpen(value.text) && id != "data_path";
        open ? LeaveOpen(std::string(id))
             : Set(std::string(id), Typed(value), found->Origin());  // a later source overrides
        if (!open)
          facts_[std::string(id)].by_name = source.dialect == ConfigDialect::kOwn && !EndsWith(source.path, ".py");
      }
    }
  }
}

/// Whether verl trains without a rollout: what it takes for an optimizer then has changed between releases.
static bool IsFineTuning(const std::vector<ConfigSource>& sources) {
  for (const ConfigSource& source : sources) {
    const auto of_rollout = [](const Setting& s) { return StartsWith(s.key, "actor_rollout_ref."); };
    if (std::any_of(source.settings.begin(), source.settings.end(), of_rollout)) return false;
  }
  return true;
}

/// Quantities that models of MindFormers 2 take from the class of their architecture, not from LlamaConfig.
static bool OfArchitecture(std::string_view id) {
  for (const std::string_view one :
       {"hidden_size",       "num_layers",      "num_heads",         "vocab_size",      "seq_length", "multiple_of",
        "normalization",     "norm_eps",        "attention_dropout", "hidden_dropout",  "activation", "position_code",
        "linear_bias",       "qkv_bias",        "qk_norm",           "bos_token",       "eos_token",  "pad_token",
        "rope_base",         "compute_dtype",   "param_init_type",   "tied_embeddings", "init_std",   "experts_chosen",
        "shared_expert_num", "capacity_factor", "aux_loss",          "routing_policy",  "norm_topk",  "score_function",
        "routed_scaling",    "enable_sdrop"}) {
    if (id == one) return true;
  }
  return false;
}

void EffectiveRun::ReadDefaults() {
  const auto names_architecture = [](const ConfigSource& source) {
    return source.dialect == ConfigDialect::kMindFormers && source.Find("model.model_config.model_type");
  };
  const bool second = std::any_of(configuration_.sources.begin(), configuration_.sources.end(), names_architecture);
  const bool fine_tuning = IsFineTuning(configuration_.sources);
  std::set<std::string_view> unknown;
  const auto partial = [&](ConfigDialect dialect) {
    return std::any_of(configuration_.sources.begin(), configuration_.sources.end(),
                       [&](const ConfigSource& source) { return source.partial && source.dialect == dialect; });
  };
  const auto read = [&](ConfigDialect dialect) {
    if (partial(dialect) || configuration_.may_set_more) return;
    for (const DefaultValue& preset : kDefaults) {
      if (preset.dialect != dialect || Find(preset.id) || unknown.contains(preset.id) || open_.contains(preset.id))
        continue;
      const bool changed = preset.id == "lr" || preset.id == "beta2" || preset.id == "lr_schedule";
      if (dialect == ConfigDialect::kMindFormers && second && OfArchitecture(preset.id)) continue;
      if (dialect == ConfigDialect::kVerl && fine_tuning && changed) continue;
      if (preset.value == "-") {
        unknown.insert(preset.id);
        continue;
      }
      Set(std::string(preset.id), PythonScalar(preset.value), "default of " + std::string(NameOf(dialect)), true);
    }
  };
  if (Has(ConfigDialect::kPeft)) read(ConfigDialect::kPeft);  // an adapter that is told in full
  // What trains decides, then what it builds on, and last the parts that it uses.
  for (const ConfigDialect dialect : dialects_) {
    const StackKind* stack = FindStack(dialect);
    if (!stack) continue;
    read(dialect);
    if (stack->base_defaults && !partial(dialect)) read(stack->base);
  }
  for (const ConfigDialect dialect : dialects_) {
    if (dialect != ConfigDialect::kDeepSpeed && !FindStack(dialect)) read(dialect);
  }
  if (Has(ConfigDialect::kDeepSpeed)) read(ConfigDialect::kDeepSpeed);
}

}  // namespace msprobe
