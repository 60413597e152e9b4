#include "config/settings.h"

#include <algorithm>
#include <unordered_map>

#include "base/text.h"

namespace msprobe {
namespace {

constexpr int kMaxReferences = 8;          // nested ones
constexpr size_t kLongestValue = 1 << 16;  // of a text with references

bool PlainList(const ConfigValue& value) {
  return std::none_of(value.items.begin(), value.items.end(), [](const ConfigValue& item) { return item.IsMap(); });
}

void FlattenInto(const ConfigValue& value, const std::string& prefix,  // NOLINT(misc-no-recursion): bounded depth
                 const std::string& file, int line, std::vector<Setting>* out) {
  const auto below = [&](const std::string& name) { return prefix.empty() ? name : prefix + "." + name; };
  if (value.IsMap() && !value.members.empty()) {
    for (const ConfigMember& member : value.members) FlattenInto(member.second, below(member.first), file, line, out);
  } else if (value.IsList() && !PlainList(value)) {
    for (size_t i = 0; i < value.items.size(); ++i) {
      FlattenInto(value.items[i], below(std::to_string(i)), file, line, out);
    }
  } else if (!prefix.empty()) {
    out->push_back({prefix, value, file, line});
  }
}

}  // namespace

std::string Setting::Origin() const { return line > 0 ? file + ":" + std::to_string(line) : file; }

const Setting* ConfigSource::Find(std::string_view key) const {
  for (auto it = settings.rbegin(); it != settings.rend(); ++it) {
    if (it->key == key) return &*it;
  }
  return nullptr;
}

void Flatten(const ConfigValue& value, const std::string& file, int line, std::vector<Setting>* out) {
  FlattenInto(value, "", file, line, out);
}

ConfigDialect GuessDialect(const std::vector<Setting>& settings) {
  std::vector<std::string_view> keys;
  for (const Setting& setting : settings) keys.emplace_back(setting.key);
  if (const ConfigDialect told = DialectOfKeys(keys); told != ConfigDialect::kUnknown) return told;
  int megatron = 0, trainer = 0, nested = 0, common = 0;
  bool device_batch = false, other = false;
  for (const Setting& setting : settings) {
    const std::string_view key = setting.key;
    // Own scripts hand a section of their yaml on: training.adam_epsilon.
    const size_t dot = key.rfind('.');
    for (const std::string_view name : {"per_device_train_batch_size", "gradient_accumulation_steps", "adam_epsilon",
                                        "max_grad_norm", "lr_scheduler_type", "adam_beta2"}) {
      nested += dot != std::string_view::npos && key.substr(dot + 1) == name;
    }
    for (const std::string_view name : {"gradient_accumulation_steps", "learning_rate", "max_grad_norm", "warmup_ratio",
                                        "lr_scheduler_type", "model_name_or_path", "adam_beta2", "optim", "bf16",
                                        "logging_steps", "num_train_epochs", "save_strategy", "adam_epsilon"}) {
      trainer += key == name;
    }
    device_batch = device_batch || key == "per_device_train_batch_size";
    // Of scripts without a Trainer, which have names like it and other defaults.
    other = other || key == "num_warmup_steps" || key == "max_train_steps" || key == "lr_warmup_steps";
    for (const std::string_view name :
         {"micro_batch_size", "global_batch_size", "tensor_model_parallel_size", "train_iters", "lr_decay_style",
          "ffn_hidden_size", "num_query_groups", "lr_warmup_iters", "lr_decay_iters", "pipeline_model_parallel_size",
          "init_method_std", "swiglu", "untie_embeddings_and_output_weights", "rotary_base", "norm_epsilon"}) {
      megatron += key == name;
    }
    for (const std::string_view name :
         {"num_layers", "num_attention_heads", "seq_length", "adam_beta2", "hidden_size"}) {
      common += key == name;
    }
  }
  if (megatron > 2 || (megatron > 0 && megatron + common > 2)) return ConfigDialect::kMegatron;
  const bool trains = device_batch || trainer > 2;
  return (trains && !other) || nested > 2 ? ConfigDialect::kHfTrainer : ConfigDialect::kUnknown;
}

void ResolveReferences(std::vector<Setting>* settings) {
  std::unordered_map<std::string_view, const Setting*> by_key;
  for (const Setting& setting : *settings) by_key[setting.key] = &setting;
  const auto resolve_once = [&](ConfigValue* value) {
    const size_t begin = value->text.find("${");
    if (begin == std::string::npos) return false;
    const size_t end = value->text.find('}', begin);
    if (end == std::string::npos) return false;
    const auto found = by_key.find(std::string_view(value->text).substr(begin + 2, end - begin - 2));
    if (found == by_key.end()) return false;
    if (begin == 0 && end + 1 == value->text.size()) {
      *value = ConfigValue(found->second->value);
    } else {
      if (found->second->value.Shown().size() + value->text.size() > kLongestValue) return false;
      value->text.replace(begin, end + 1 - begin, found->second->value.Shown());
    }
    return value->IsText();
  };
  std::vector<ConfigValue> resolved;
  for (const Setting& setting : *settings) {
    resolved.push_back(setting.value);
    for (int i = 0; i < kMaxReferences && resolved.back().IsText() && resolve_once(&resolved.back()); ++i) {
    }
  }
  for (size_t i = 0; i < settings->size(); ++i) (*settings)[i].value = std::move(resolved[i]);
}

}  // namespace msprobe
