#include "checks/effective.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"

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

struct DefaultValue {
  ConfigDialect dialect;
  std::string_view id, value;
};

constexpr DefaultValue kDefaults[] = {
#define MSP_DEFAULT(dialect, id, value) {ConfigDialect::dialect, #id, value},
#include "checks/defaults.def"
#undef MSP_DEFAULT
};

std::string LowerText(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; });
  return text;
}

/// The items of a list, also of one that a shell passes on as a text: "[0.9, 0.95]".
std::vector<ConfigValue> ItemsOf(const ConfigValue& value) {
  if (value.IsList()) return value.items;
  if (!value.IsText() || value.text.size() < 2 || (value.text[0] != '[' && value.text[0] != '(')) return {};
  std::vector<ConfigValue> out;
  for (std::string_view part : Split(std::string_view(value.text).substr(1, value.text.size() - 2), ',')) {
    while (StartsWith(part, " ")) part.remove_prefix(1);
    while (EndsWith(part, " ")) part.remove_suffix(1);
    out.push_back(PythonScalar(part));
  }
  return out;
}

/// "key", "!key" (the opposite), "key#1" (the second element), in the source; the value that it gives.
const Setting* LookUp(const ConfigSource& source, std::string_view name, ConfigValue* out) {
  const bool negated = StartsWith(name, "!");
  if (negated) name.remove_prefix(1);
  const size_t hash = name.find('#');
  const std::string_view key = name.substr(0, hash);
  const Setting* found = source.Find(key);
  if (!found && source.dialect == ConfigDialect::kMegatron) {  // sections of a yaml behind --yaml-cfg
    const auto same_end = [&](const Setting& s) { return EndsWith(s.key, "." + std::string(key)); };
    const auto last = std::find_if(source.settings.rbegin(), source.settings.rend(), same_end);
    if (last != source.settings.rend()) found = &*last;
  }
  if (!found || found->value.IsNull()) return nullptr;
  *out = found->value;
  if (out->IsText() && (out->text == "auto" || out->text == "None")) return nullptr;
  if (hash != std::string_view::npos) {
    const size_t index = static_cast<size_t>(name[hash + 1] - '0');
    const std::vector<ConfigValue> items = ItemsOf(*out);
    if (index >= items.size()) return nullptr;
    *out = items[index];
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

double RoundUp(double value, double to) { return to > 0 ? std::ceil(value / to) * to : value; }

}  // namespace

EffectiveRun::EffectiveRun(Configuration configuration, const Pack* pack) : configuration_(std::move(configuration)) {
  if (pack) {
    for (const Setting& variable : pack->environment) configuration_.environment.push_back(variable);
    configuration_.packages.insert(configuration_.packages.end(), pack->packages.begin(), pack->packages.end());
    for (const auto& [file, members] : pack->hyperparameters) {
      ConfigSource source;
      source.path = file;
      for (const ConfigMember& member : members) {
        Setting setting{member.first, member.second, file, 0};
        std::replace(setting.key.begin(), setting.key.end(), '-', '_');
        source.settings.push_back(std::move(setting));
      }
      source.dialect = GuessDialect(source.settings);
      configuration_.sources.push_back(std::move(source));
    }
    for (const auto& [at, features] : pack->dataset) {
      for (const NamedFeatures& item : features) {
        if (!item.is_tensor || (item.name != "args.0" && !EndsWith(item.name, "input_ids"))) continue;
        const auto [low, high] = std::pair(item.features.min, item.features.max);
        if (low != std::floor(low) || high != std::floor(high)) continue;
        tokens_ =
            tokens_ ? std::pair(std::min(tokens_->first, low), std::max(tokens_->second, high)) : std::pair(low, high);
      }
    }
  }
  for (const ConfigSource& source : configuration_.sources) {
    if (source.dialect == ConfigDialect::kUnknown || source.dialect == ConfigDialect::kTokenizer) continue;
    if (!Has(source.dialect)) dialects_.push_back(source.dialect);
  }
  ReadNamed();
  ReadOptimizerGroups();
  ReadTokenizer();
  ReadVersions();
  ReadDeepSpeedDefaults();
  ReadDefaults();
  DeriveAttention();
  DeriveWindow();
  DeriveActivation();
  DeriveOfModelType();
  DeriveSizes();
  DeriveMoe();
  DeriveBatch();
  DeriveOptimizer();
  DerivePrecision();
}

bool EffectiveRun::Has(ConfigDialect dialect) const {
  return std::find(dialects_.begin(), dialects_.end(), dialect) != dialects_.end();
}

const Fact* EffectiveRun::Find(std::string_view quantity) const {
  const auto found = facts_.find(quantity);
  return found == facts_.end() ? nullptr : &found->second;
}

std::optional<double> EffectiveRun::Number(std::string_view quantity) const {
  const Fact* fact = Find(quantity);
  return fact ? fact->value.AsNumber() : std::nullopt;
}

std::optional<bool> EffectiveRun::Truth(std::string_view quantity) const {
  const Fact* fact = Find(quantity);
  return fact ? fact->value.AsBool() : std::nullopt;
}

std::string EffectiveRun::Word(std::string_view quantity) const {
  const Fact* fact = Find(quantity);
  return fact ? LowerText(fact->value.Shown()) : std::string();
}

const Setting* EffectiveRun::Variable(std::string_view name) const {
  const auto& all = configuration_.environment;
  const auto found = std::find_if(all.rbegin(), all.rend(), [&](const Setting& s) { return s.key == name; });
  return found == all.rend() ? nullptr : &*found;
}

std::string EffectiveRun::Package(std::string_view name) const {
  for (const auto& [package, version] : configuration_.packages) {
    if (package == name) return version;
  }
  return {};
}

bool EffectiveRun::IsMoe() const { return Number("expert_num").value_or(0) > 1; }

void EffectiveRun::Set(const std::string& quantity, ConfigValue value, const std::string& origin, bool by_default) {
  facts_[quantity] = {std::move(value), origin, by_default};
}

void EffectiveRun::From(std::string_view source, const std::string& quantity, ConfigValue value) {
  const Fact* fact = Find(source);
  Set(quantity, std::move(value), fact ? fact->origin : "", fact && fact->by_default);
}

void EffectiveRun::ReadNamed() {
  for (const QuantityNames& quantity : kQuantities) {
    for (const ConfigSource& source : configuration_.sources) {
      const size_t column = static_cast<size_t>(source.dialect);
      if (column == 0 || column > quantity.keys.size()) continue;
      for (const std::string_view name : Split(quantity.keys[column - 1], '|')) {
        ConfigValue value;
        const Setting* found = name.empty() ? nullptr : LookUp(source, name, &value);
        if (!found) continue;
        Set(std::string(quantity.id), Typed(value), found->Origin());  // a later source overrides
        break;
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

void EffectiveRun::ReadDefaults() {
  const bool fine_tuning = IsFineTuning(configuration_.sources);
  for (const DefaultValue& preset : kDefaults) {
    if (!Has(preset.dialect) || Find(preset.id)) continue;
    const bool changed = preset.id == "lr" || preset.id == "beta2" || preset.id == "lr_schedule";
    if (preset.dialect == ConfigDialect::kVerl && fine_tuning && changed) continue;
    Set(std::string(preset.id), PythonScalar(preset.value), "default of " + std::string(NameOf(preset.dialect)), true);
  }
}

void EffectiveRun::DeriveAttention() {
  const double heads = Number("num_heads").value_or(0);
  if (Has(ConfigDialect::kMegatron)) {
    bool grouped = false;
    for (const ConfigSource& source : configuration_.sources) {
      if (const Setting* flag = source.Find("group_query_attention")) grouped = flag->value.AsBool().value_or(true);
    }
    if (!grouped && heads > 0) From("num_heads", "kv_heads", ConfigValue::Of(static_cast<int64_t>(heads)));
  } else if (!Find("kv_heads") && heads > 0) {
    From("num_heads", "kv_heads", ConfigValue::Of(static_cast<int64_t>(heads)));
  }
  if (const auto kv = Number("kv_heads"); kv && heads > 0) {
    From("kv_heads", "attention_kind", ConfigValue::Of(*kv == heads ? "MHA" : *kv == 1 ? "MQA" : "GQA"));
  }
}

/// Megatron counts the tokens before the present one, others the present one too.
void EffectiveRun::DeriveWindow() {
  const Fact* window = Find("sliding_window");
  if (!window || !Has(ConfigDialect::kMegatron) || window->by_default) return;
  const std::string text =
      window->value.IsList() && !window->value.items.empty() ? window->value.items[0].Shown() : window->value.Shown();
  const size_t digit = text.find_first_of("0123456789");
  if (digit == std::string::npos || StartsWith(text, "-")) return;
  const ConfigValue left = PythonScalar(text.substr(digit, text.find_first_not_of("0123456789", digit) - digit));
  if (left.kind == ConfigValue::Kind::kInt) From("sliding_window", "sliding_window", ConfigValue::Of(left.integer + 1));
}

void EffectiveRun::DeriveActivation() {
  for (const ConfigSource& source : configuration_.sources) {  // an earlier name of --position-embedding-type rope
    const Setting* rotary = source.Find("use_rotary_position_embeddings");
    const bool on = source.dialect == ConfigDialect::kMegatron && rotary && rotary->value.AsBool().value_or(false);
    if (on) Set("position_code", ConfigValue::Of("rope"), rotary->Origin());
  }
  // Gated SiLU is swiglu in every one of them.
  bool swiglu = false;
  std::string activation_origin = "default of Megatron";
  for (const ConfigSource& source : configuration_.sources) {
    const auto flag = [&](std::string_view key) {
      const Setting* found = source.Find(key);
      if (found) activation_origin = found->Origin();
      return found && found->value.AsBool().value_or(false);
    };
    if (source.dialect != ConfigDialect::kMegatron) continue;
    swiglu = swiglu || flag("swiglu");
    if (swiglu)
      Set("activation", ConfigValue::Of("swiglu"), activation_origin);
    else if (flag("squared_relu"))
      Set("activation", ConfigValue::Of("squared_relu"), activation_origin);
  }
  if (Has(ConfigDialect::kMegatron) && !Find("activation")) {
    Set("activation", ConfigValue::Of("gelu"), "default of Megatron", true);
  }
  const std::string act = Word("activation");
  if (act == "silu" || act == "swish" || act == "swiglu") From("activation", "activation", ConfigValue::Of("swiglu"));
}

void EffectiveRun::DeriveOfModelType() {
  if (Has(ConfigDialect::kHfModel)) {
    for (const ConfigSource& source : configuration_.sources) {
      if (source.dialect != ConfigDialect::kHfModel) continue;
      const Setting* type = source.Find("model_type");
      const std::string kind = type ? type->value.Shown() : "";
      const bool rms = source.Find("rms_norm_eps") != nullptr;
      if (!Find("normalization")) Set("normalization", ConfigValue::Of(rms ? "RMSNorm" : "LayerNorm"), source.path);
      if (rms && !Find("position_code")) Set("position_code", ConfigValue::Of("rope"), source.path);
      const Setting* windowed = source.Find("use_sliding_window");
      if (windowed && !windowed->value.AsBool().value_or(true)) facts_.erase("sliding_window");
      if (!Find("qk_norm")) Set("qk_norm", ConfigValue::Of(StartsWith(kind, "qwen3")), "default of " + kind, true);
      if (kind == "mixtral") Set("norm_topk", ConfigValue::Of(true), "default of " + kind, true);
      for (const std::string_view family : {"llama", "mistral", "mixtral", "qwen2", "qwen3", "deepseek"}) {
        if (!StartsWith(kind, family)) continue;
        if (!Find("tied_embeddings")) Set("tied_embeddings", ConfigValue::Of(false), "default of " + kind, true);
        if (!Find("linear_bias")) Set("linear_bias", ConfigValue::Of(false), "default of " + kind, true);
        if (!Find("qkv_bias")) Set("qkv_bias", ConfigValue::Of(StartsWith(kind, "qwen2")), "default of " + kind, true);
      }
    }
  }
}

void EffectiveRun::DeriveSizes() {
  const bool swiglu = Word("activation") == "swiglu";
  const auto hidden = Number("hidden_size");
  if (!Find("intermediate_size") && hidden) {
    if (Has(ConfigDialect::kMegatron)) {
      const double size = swiglu ? std::floor(std::floor(4 * *hidden * 2 / 3) / 64) * 64 : 4 * *hidden;
      From("hidden_size", "intermediate_size", ConfigValue::Of(static_cast<int64_t>(size)));
    } else if (Has(ConfigDialect::kMindFormers)) {
      double size = std::floor(2 * 4 * *hidden / 3);
      if (const auto factor = Number("ffn_multiplier")) size = std::floor(size * *factor);
      size = RoundUp(size, Number("multiple_of").value_or(256));
      From("multiple_of", "intermediate_size", ConfigValue::Of(static_cast<int64_t>(size)));
    }
  }
  if (const auto vocab = Number("vocab_size")) {
    double padded = *vocab;
    if (Has(ConfigDialect::kMegatron)) {
      double divisor = 128;
      for (const ConfigSource& source : configuration_.sources) {
        if (const Setting* by = source.Find("make_vocab_size_divisible_by"))
          divisor = by->value.AsNumber().value_or(divisor);
        if (const Setting* by = source.Find("padded_vocab_size")) padded = by->value.AsNumber().value_or(padded);
      }
      if (padded == *vocab) padded = RoundUp(*vocab, divisor * Number("model_parallel").value_or(1));
    }
    From("vocab_size", "padded_vocab", ConfigValue::Of(static_cast<int64_t>(padded)));
  }
  // rotary scaling: the factor where it is switched on, else 1
  const std::string scaling = Word("use_rope_scaling");
  const bool scaled = !scaling.empty() && scaling != "none" && scaling != "false" && scaling != "default";
  if (!scaled) {
    Set("rope_factor", ConfigValue::Of(1.0), Find("use_rope_scaling") ? Find("use_rope_scaling")->origin : "not set",
        true);
  } else {
    const Fact* factor = Find("rope_scaling");
    Set("rope_factor", factor ? factor->value : ConfigValue::Of(8.0), factor ? factor->origin : "default of Megatron");
  }
}

void EffectiveRun::DeriveMoe() {
  if (!IsMoe()) return;
  DeriveSharedExperts();
  for (const ConfigSource& source : configuration_.sources) {
    const Setting* balance = source.Find("moe_router_load_balancing_type");
    if (source.dialect == ConfigDialect::kMegatron && balance && balance->value.Shown() == "none") {
      Set("aux_loss", ConfigValue::Of(0.0), balance->Origin());
    }
  }
  // Dropping by position with padding is what MindFormers calls sdrop.
  if (!Find("enable_sdrop") && Find("token_drop_policy") && Has(ConfigDialect::kMegatron)) {
    const bool same = Word("token_drop_policy") == "position" && Truth("pad_to_capacity").value_or(false);
    From("token_drop_policy", "enable_sdrop", ConfigValue::Of(same));
  }
  const std::string score = Word("score_function");
  if (score == "true") From("score_function", "score_function", ConfigValue::Of("sigmoid"));
  if (score == "false") From("score_function", "score_function", ConfigValue::Of("softmax"));
  // Softmax over the chosen ones is softmax over all with the chosen ones normalised.
  if (!Find("norm_topk") && Find("pre_softmax")) {
    From("pre_softmax", "norm_topk", ConfigValue::Of(!Truth("pre_softmax").value_or(false)));
  }
}

/// Megatron gives the size of all shared experts together.
void EffectiveRun::DeriveSharedExperts() {
  const auto size = Number("moe_intermediate_size");
  if (Find("shared_expert_num") || !Has(ConfigDialect::kMegatron)) return;
  for (const ConfigSource& source : configuration_.sources) {
    const Setting* all = source.Find("moe_shared_expert_intermediate_size");
    const auto together = all ? all->value.AsNumber() : std::nullopt;
    if (!together || !size || *size <= 0) continue;
    return Set("shared_expert_num", ConfigValue::Of(static_cast<int64_t>(*together / *size)), all->Origin());
  }
  Set("shared_expert_num", ConfigValue::Of(int64_t{0}), "default of Megatron", true);
}

void EffectiveRun::DeriveBatch() {
  std::optional<double> world = Number("world_size");
  double per_node = 0, nodes = 1;
  std::string origin;
  for (const Setting& option : configuration_.launcher) {
    const double value = option.value.AsNumber().value_or(0);
    if (option.key == "nproc_per_node" || option.key == "num_gpus" || option.key == "num_processes")
      per_node = value;
    else if (option.key == "nnodes" || option.key == "num_nodes")
      nodes = value > 0 ? value : 1;
    else if (option.key == "worker_num")
      per_node = value, nodes = 1;
    else
      continue;
    origin = option.Origin();
  }
  if (!world && per_node > 0) {
    world = per_node * nodes;
    Set("world_size", ConfigValue::Of(static_cast<int64_t>(*world)), origin);
  }
  const double shards =
      Number("model_parallel").value_or(1) * Number("pipeline").value_or(1) * Number("context_parallel").value_or(1);
  if (world && shards > 0 && !Has(ConfigDialect::kMindFormers)) {
    From("world_size", "data_parallel", ConfigValue::Of(static_cast<int64_t>(*world / shards)));
  }
  const auto micro = Number("micro_batch"), dp = Number("data_parallel");
  if (Find("global_batch") || !micro || !dp) return;
  double batch = *micro * *dp * Number("accumulation").value_or(1);
  if (Has(ConfigDialect::kMindFormers)) {
    if (Number("pipeline").value_or(1) > 1) batch *= Number("micro_batch_num").value_or(1);
    batch *= Number("micro_batch_interleave").value_or(1);
  }
  From("micro_batch", "global_batch", ConfigValue::Of(static_cast<int64_t>(batch)));
}

void EffectiveRun::DeriveOptimizer() {
  const std::string name = Word("optimizer");
  if (Contains(name, "adamw") || name == "adam" || Contains(name, "adamweightdecay")) {
    From("optimizer", "optimizer_kind", ConfigValue::Of("adamw"));
  } else if (!name.empty()) {
    From("optimizer", "optimizer_kind", ConfigValue::Of(name));
  }
  std::string schedule = Word("lr_schedule");
  if (schedule == "warmuplr") schedule = "constant";  // of DeepSpeed, as the next
  if (schedule == "warmupdecaylr") schedule = "linear";
  for (const std::string_view kind : {"cosine", "linear", "constant", "polynomial", "inverse", "wsd"}) {
    if (!Contains(schedule, kind)) continue;
    From("lr_schedule", "schedule", ConfigValue::Of(kind));
    break;
  }
  const double batch = Number("global_batch").value_or(0);
  if (!Find("train_steps") && Find("train_samples") && batch > 0) {
    From("train_samples", "train_steps", ConfigValue::Of(std::floor(*Number("train_samples") / batch)));
  }
  const auto total = Number("decay_steps").value_or(-1) > 0 ? Number("decay_steps") : Number("train_steps");
  double ratio = Number("warmup_ratio").value_or(0);
  if (const auto share = Number("warmup_steps"); share && *share > 0 && *share < 1) {
    // transformers 5: below 1 it is a share of the steps.
    ratio = *share;
    From("warmup_steps", "warmup_ratio", ConfigValue::Of(ratio));
    if (total && *total > 0) From("warmup_steps", "warmup", ConfigValue::Of(std::ceil(ratio * *total)));
  } else if (Number("warmup_steps").value_or(0) > 0) {
    From("warmup_steps", "warmup", Find("warmup_steps")->value);
  } else if (ratio > 0 && total && *total > 0) {
    From("warmup_ratio", "warmup", ConfigValue::Of(std::round(ratio * *total)));
  } else if (Number("warmup_samples").value_or(0) > 0 && batch > 0) {
    From("warmup_samples", "warmup", ConfigValue::Of(std::floor(*Number("warmup_samples") / batch)));
  } else if (ratio == 0 && (Find("warmup_steps") || !dialects_.empty())) {
    const Fact* steps = Find("warmup_steps");
    Set("warmup", ConfigValue::Of(int64_t{0}), steps ? steps->origin : "no warmup is set", !steps);
  }
  if (ratio > 0) {
    From("warmup_ratio", "warmup_share", ConfigValue::Of(ratio));
  } else if (const auto steps = Number("warmup"); steps && total && *total > 0) {
    From("warmup", "warmup_share", ConfigValue::Of(*steps / *total));
  }
  if (Has(ConfigDialect::kMindFormers) && !Truth("use_clip_grad").value_or(false)) {
    From("use_clip_grad", "clip_grad", ConfigValue::Of(0.0));
  }
}

void EffectiveRun::DerivePrecision() {
  std::string kind = Word("compute_dtype");
  if (const Fact* fact = Find("compute_dtype")) {
    const char* plain = Contains(kind, "bf") ? "bf16" : Contains(kind, "16") ? "fp16" : "fp32";
    Set("precision", ConfigValue::Of(plain), fact->origin, fact->by_default);
  }
  for (const ConfigSource& source : configuration_.sources) {
    if (source.dialect == ConfigDialect::kMindFormers || source.dialect == ConfigDialect::kHfModel) continue;
    for (const auto& [key, value] :
         {std::pair("fp16", "fp16"), {"fp16.enabled", "fp16"}, {"bf16", "bf16"}, {"bf16.enabled", "bf16"}}) {
      const Setting* flag = source.Find(key);
      if (flag && flag->value.AsBool().value_or(false)) Set("precision", ConfigValue::Of(value), flag->Origin());
    }
    if (source.dialect == ConfigDialect::kMegatron && !Find("precision")) {
      Set("precision", ConfigValue::Of("fp32"), "default of Megatron", true);
    }
  }
  if (Has(ConfigDialect::kMegatron)) {
    if (!Find("param_init_type")) {
      Set("param_init_type", ConfigValue::Of("float32"),
          "Megatron keeps fp32 weights beside those that it computes with", true);
    }
    // With bf16 Megatron adds gradients up in fp32 whatever is set.
    if (Word("precision") == "bf16") Set("grads_in_fp32", ConfigValue::Of(true), "Megatron with bf16", true);
  }
  if (const auto fp32 = Truth("softmax_fp32"); fp32 && !Find("softmax_dtype")) {
    From("softmax_fp32", "softmax_dtype", ConfigValue::Of(*fp32 ? "float32" : Word("precision")));
  }
  for (const ConfigSource& source : configuration_.sources) {
    const Setting* kind = source.Find("runner_wrapper.scale_sense.type");
    if (kind && Contains(kind->value.Shown(), "Dynamic")) Set("loss_scale", ConfigValue::Of("dynamic"), kind->Origin());
  }
  const Fact* stage = Find("parallel_optimizer");
  if (stage && stage->value.kind == ConfigValue::Kind::kInt) {
    From("parallel_optimizer", "parallel_optimizer", ConfigValue::Of(stage->value.integer > 0));
  }
  if (const Fact* fact = Find("residual_dtype"); fact && !Find("residual_fp32")) {
    Set("residual_fp32", ConfigValue::Of(Contains(fact->value.Shown(), "32")), fact->origin, fact->by_default);
  }
  const std::string deterministic = Word("deterministic");
  if (!deterministic.empty()) {
    From("deterministic", "deterministic", ConfigValue::Of(deterministic == "on" || deterministic == "true"));
  }
}

}  // namespace msprobe
