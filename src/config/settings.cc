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

ConfigValue Nested(const std::vector<Setting>& settings) {
  ConfigValue out;
  out.kind = ConfigValue::Kind::kMap;
  for (const Setting& setting : settings) {
    ConfigValue* at = &out;
    for (const std::string_view part : Split(setting.key, '.')) {
      if (!at->IsMap()) *at = {};
      at->kind = ConfigValue::Kind::kMap;
      auto member = std::find_if(at->members.begin(), at->members.end(),
                                 [&](const ConfigMember& one) { return one.first == part; });
      if (member == at->members.end()) {
        at->members.push_back({std::string(part), {}});
        member = at->members.end() - 1;
      }
      at = &member->second;
    }
    *at = setting.value;
  }
  return out;
}

void Flatten(const ConfigValue& value, const std::string& file, int line, std::vector<Setting>* out) {
  FlattenInto(value, "", file, line, out);
}

namespace {

/// Of the names, how many are keys; a section of an own script hands them on: training.adam_epsilon.
int CountKeys(const std::vector<std::string_view>& keys, std::string_view names, bool nested = false) {
  int out = 0;
  for (const std::string_view name : Split(names, ' ')) {
    out += std::any_of(keys.begin(), keys.end(), [&](std::string_view key) {
      const size_t dot = key.rfind('.');
      return nested ? dot != std::string_view::npos && key.substr(dot + 1) == name : key == name;
    });
  }
  return out;
}

// Of Megatron alone, and what others call so, too.
constexpr std::string_view kMegatronKeys =
    "tensor_model_parallel_size pipeline_model_parallel_size train_iters train_samples lr_decay_style lr_decay_iters "
    "lr_warmup_iters lr_warmup_samples lr_warmup_fraction lr_decay_samples ffn_hidden_size init_method_std "
    "untie_embeddings_and_output_weights use_mcore_models norm_epsilon attention_softmax_in_fp32 "
    "use_distributed_optimizer disable_bias_linear group_query_attention make_vocab_size_divisible_by "
    "distributed_backend num_layers_per_virtual_pipeline_stage no_gradient_accumulation_fusion "
    "accumulate_allreduce_grads_in_fp32 sequence_parallel transformer_impl recompute_granularity eval_iters "
    "moe_router_topk moe_aux_loss_coeff moe_grouped_gemm num_query_groups rotary_base swiglu";
constexpr std::string_view kMegatronHints =
    "micro_batch_size global_batch_size num_layers num_attention_heads seq_length hidden_size adam_beta2 adam_beta1 "
    "max_position_embeddings position_embedding_type normalization clip_grad data_path split tokenizer_type "
    "tokenizer_model hidden_dropout attention_dropout rotary_percent";
// Of TrainingArguments.
constexpr std::string_view kTrainerKeys =
    "save_strategy evaluation_strategy eval_strategy save_total_limit logging_strategy remove_unused_columns "
    "ddp_find_unused_parameters load_best_model_at_end metric_for_best_model group_by_length full_determinism "
    "warmup_ratio lr_scheduler_kwargs logging_steps save_steps overwrite_output_dir bf16_full_eval logging_first_step";
constexpr std::string_view kTrainerHints =
    "per_device_train_batch_size gradient_accumulation_steps learning_rate max_grad_norm lr_scheduler_type "
    "model_name_or_path adam_beta1 adam_beta2 adam_epsilon optim bf16 fp16 num_train_epochs max_steps warmup_steps "
    "weight_decay report_to output_dir gradient_checkpointing dataloader_num_workers do_train";
constexpr std::string_view kTrainerNested =
    "per_device_train_batch_size gradient_accumulation_steps adam_epsilon max_grad_norm lr_scheduler_type adam_beta2";
// Of scripts without a Trainer, which have names like it and other defaults.
constexpr std::string_view kOtherLoops = "num_warmup_steps max_train_steps lr_warmup_steps";
constexpr int kSureKeys = 2, kSureNames = 4, kSureAlone = 6, kSureNested = 3;

/// Several keys that only it has, or one among many names of it.
bool IsSure(int keys, int hints) {
  return (keys >= kSureKeys && keys + hints >= kSureNames) || (keys > 0 && keys + hints > kSureNames);
}

}  // namespace

ConfigDialect GuessDialect(const std::vector<Setting>& settings) {
  std::vector<std::string_view> keys;
  for (const Setting& setting : settings) keys.emplace_back(setting.key);
  bool doubtful = false;
  if (const ConfigDialect told = DialectOfKeys(keys, &doubtful); told != ConfigDialect::kUnknown) return told;
  if (doubtful) return ConfigDialect::kUnknown;
  if (IsSure(CountKeys(keys, kMegatronKeys), CountKeys(keys, kMegatronHints))) return ConfigDialect::kMegatron;
  if (CountKeys(keys, kOtherLoops) == 0) {
    const int own = CountKeys(keys, kTrainerKeys), shared = CountKeys(keys, kTrainerHints);
    // Without a name of its own, with those that others do not put together.
    const bool told = CountKeys(keys, "per_device_train_batch_size lr_scheduler_type") > 0;
    if (IsSure(own, shared) || (told && shared >= kSureAlone)) return ConfigDialect::kHfTrainer;
  }
  return CountKeys(keys, kTrainerNested, true) >= kSureNested ? ConfigDialect::kHfTrainer : ConfigDialect::kUnknown;
}

void ResolveReferences(std::vector<Setting>* settings) {
  std::unordered_map<std::string_view, const Setting*> by_key;
  for (const Setting& setting : *settings) by_key[setting.key] = &setting;
  // ${a.b} from the top, ${.b} beside the setting, ${..b} a level above.
  const auto from_top = [](std::string_view name, std::string_view key) {
    if (!StartsWith(name, ".")) return std::string(name);
    while (StartsWith(name, ".")) {
      name.remove_prefix(1);
      const size_t dot = key.rfind('.');
      key = key.substr(0, dot == std::string_view::npos ? 0 : dot);
    }
    return (key.empty() ? "" : std::string(key) + ".") + std::string(name);
  };
  const auto resolve_once = [&](ConfigValue* value, std::string_view key) {
    const size_t begin = value->text.find("${");
    if (begin == std::string::npos) return false;
    const size_t end = value->text.find('}', begin);
    if (end == std::string::npos) return false;
    const auto found = by_key.find(from_top(std::string_view(value->text).substr(begin + 2, end - begin - 2), key));
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
    for (int i = 0; i < kMaxReferences && resolved.back().IsText() && resolve_once(&resolved.back(), setting.key);
         ++i) {
    }
  }
  for (size_t i = 0; i < settings->size(); ++i) (*settings)[i].value = std::move(resolved[i]);
}

}  // namespace msprobe
