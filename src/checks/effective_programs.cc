// What stacks with programs of their own say in units, words or parts that only they have.
#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "checks/effective.h"
#include "config/stack/stacks.h"

namespace msprobe {
namespace {

/// "1000ba", "2ep", "0.05dur", "3e9tok": a number and what it counts; "" without a unit.
struct Length {
  double number = 0;
  std::string_view unit;
};

std::optional<Length> LengthOf(const Fact* fact) {
  if (!fact) return std::nullopt;
  if (const auto number = fact->value.AsNumber()) return Length{*number, {}};
  if (!fact->value.IsText()) return std::nullopt;
  const std::string_view text = fact->value.text;
  const size_t digits = text.find_last_of("0123456789.");
  if (digits == std::string_view::npos || digits + 1 >= text.size()) return std::nullopt;
  const auto number = PythonScalar(text.substr(0, digits + 1)).AsNumber();
  const std::string_view unit = text.substr(digits + 1);
  for (const std::string_view known : {"ba", "ep", "dur", "tok", "sp", "T"}) {
    if (number && unit == known) return Length{*number, known == "T" ? std::string_view("tok") : known};
  }
  return std::nullopt;
}

}  // namespace

void EffectiveRun::DeriveOfPrograms() {
  DeriveOfMpt();
  DeriveOfOlmo();
  DeriveNorm();
  DeriveOfTimm();
  DeriveOfOpenClip();
  DeriveOfNanoGpt();
  DeriveOfMmengine();
  DeriveMeans();
  DeriveOfDetectron();
  DeriveMilestones();
  DeriveOwnBatch();
  DeriveLengths();
  const auto ratio = Number("ffn_ratio"), hidden = Number("hidden_size");
  if (ratio && hidden && !Find("intermediate_size")) {
    From("ffn_ratio", "intermediate_size", ConfigValue::Of(static_cast<int64_t>(std::floor(*ratio * *hidden))));
  }
  DeriveDivergence();
  // It decays by a share of the weights, not of the rate times the weights.
  const auto decay = Number("weight_decay"), rate = Number("lr");
  if (Contains(Word("optimizer"), "decoupled") && decay && rate && *rate > 0) {
    From("weight_decay", "weight_decay", ConfigValue::Of(*decay / *rate));
  }
  if (const auto mixed = Truth("use_amp"); mixed && !Find("compute_dtype")) {
    From("use_amp", "compute_dtype", ConfigValue::Of(*mixed ? "float16" : "float32"));
  }
}

/// What configuration_mpt.py takes for a model of LLM Foundry that the file names without saying more.
void EffectiveRun::DeriveOfMpt() {
  for (const ConfigSource& source : configuration_.sources) {
    const Setting* name = source.Find("model.name");
    if (source.dialect != ConfigDialect::kLlmFoundry || !name || name->value.Shown() != "mpt_causal_lm") continue;
    const auto preset = [&](const char* quantity, std::string_view value) {
      if (!Find(quantity)) Set(quantity, PythonScalar(value), "default of MPT", true);
    };
    const auto on = [&](std::string_view key) {
      const Setting* flag = source.Find(key);
      if (flag) used_.try_emplace(flag->key);
      return flag && flag->value.AsBool().value_or(false);
    };
    for (const auto& [quantity, value] : {std::pair("num_layers", "24"),
                                          {"num_heads", "16"},
                                          {"hidden_size", "2048"},
                                          {"vocab_size", "50368"},
                                          {"seq_length", "2048"},
                                          {"attention_dropout", "0.0"},
                                          {"hidden_dropout", "0.0"},
                                          {"normalization", "LayerNorm"},
                                          {"norm_eps", "1e-05"},
                                          {"qk_norm", "False"},
                                          {"tied_embeddings", "True"}}) {
      preset(quantity, value);
    }
    const bool biased = !on("model.no_bias");
    preset("linear_bias", biased ? "True" : "False");
    preset("qkv_bias", biased ? "True" : "False");
    const bool rope = on("model.attn_config.rope"), alibi = on("model.attn_config.alibi");
    preset("position_code", rope ? "rope" : alibi ? "alibi" : "learned_absolute");
    const Setting *attention = source.Find("model.attn_config.attn_type"),
                  *ffn = source.Find("model.ffn_config.ffn_type");
    const std::string kind = attention ? attention->value.Shown() : "multihead_attention";
    if (kind == "multiquery_attention") preset("kv_heads", "1");
    if (kind == "multihead_attention" && Find("num_heads")) preset("kv_heads", Find("num_heads")->value.Shown());
    if (!ffn || ffn->value.Shown() == "mptmlp") preset("activation", "gelu");
    if (!Find("intermediate_size")) preset("ffn_ratio", "4");
  }
}

/// Its MLP has as many columns as both halves of a gated one together, and its model says by flags how it counts
/// positions.
void EffectiveRun::DeriveOfOlmo() {
  for (const ConfigSource& source : configuration_.sources) {
    if (source.dialect != ConfigDialect::kOlmo) continue;
    const auto on = [&](std::string_view key) {
      const Setting* flag = source.Find(key);
      if (flag) used_.try_emplace(flag->key);
      return flag && flag->value.AsBool().value_or(false);
    };
    for (const char* kind : {"default", "low_precision"}) {  // of torch.nn.LayerNorm
      if (Word("normalization") == kind) From("normalization", "normalization", ConfigValue::Of("LayerNorm"));
    }
    const bool rope = on("model.rope"), alibi = on("model.alibi");
    if (rope || alibi) {
      Set("position_code", ConfigValue::Of(rope ? "rope" : "alibi"),
          source.Find(rope ? "model.rope" : "model.alibi")->Origin());
    }
    if (on("model.multi_query_attention")) Set("kv_heads", ConfigValue::Of(int64_t{1}), source.path);
    const auto ratio = Number("ffn_ratio"), hidden = Number("hidden_size");
    const char* from = Find("intermediate_size") ? "intermediate_size" : "ffn_ratio";
    const auto all = Find("intermediate_size") ? Number("intermediate_size")
                     : ratio && hidden         ? std::optional(*ratio * *hidden)
                                               : std::nullopt;
    const double halves = Contains(Word("activation"), "swiglu") ? 2 : 1;
    if (all) return From(from, "intermediate_size", ConfigValue::Of(static_cast<int64_t>(*all / halves)));
  }
}

/// One word for each kind of norm.
void EffectiveRun::DeriveNorm() {
  if (const auto rms = Truth("use_rmsnorm"); rms && !Find("normalization")) {
    From("use_rmsnorm", "normalization", ConfigValue::Of(*rms ? "RMSNorm" : "LayerNorm"));
  }
  const std::string norm = Word("normalization");
  if (Contains(norm, "rms")) From("normalization", "normalization", ConfigValue::Of("RMSNorm"));
  const bool layer = Contains(norm, "layernorm") || Contains(norm, "layer_norm") || norm == "ln";
  if (layer && !Contains(norm, "1p") && !Contains(norm, "rms")) {
    From("normalization", "normalization", ConfigValue::Of("LayerNorm"));
  }
  DeriveNormEps(Word("normalization"));
}

/// That of the norm which is used, where a file has one for each kind.
void EffectiveRun::DeriveNormEps(const std::string& norm) {
  const bool rms = norm == "rmsnorm", scale = norm == "scalenorm";
  const auto of_kind = [&](std::string_view name) {
    if (scale) return name == "scalenorm_epsilon";
    if (Contains(name, "scale")) return false;
    return norm.empty() || Contains(name, "rms") == rms;
  };
  constexpr std::string_view kNames =
      "rms_norm_eps rms_norm_epsilon rmsnorm_eps rms_eps layer_norm_eps layernorm_epsilon layer_norm_epsilon "
      "layernorm_eps ln_eps scalenorm_epsilon";
  for (const ConfigSource& source : configuration_.sources) {
    std::vector<const Setting*> fits, others;
    for (const Setting& setting : source.settings) {
      const std::string_view name = std::string_view(setting.key).substr(setting.key.rfind('.') + 1);
      const auto names = Split(kNames, ' ');
      if (setting.value.IsNull() || std::find(names.begin(), names.end(), name) == names.end()) continue;
      (of_kind(name) ? fits : others).push_back(&setting);
    }
    for (const Setting* other : others) used_.try_emplace(other->key, "norm_eps");
    if (others.empty() || norm.empty()) continue;
    const Fact* now = Find("norm_eps");
    const bool read =
        now && std::any_of(others.begin(), others.end(), [&](const Setting* s) { return s->Origin() == now->origin; });
    if (read && !fits.empty()) {
      Set("norm_eps", PythonScalar(fits[0]->value.Shown()), fits[0]->Origin());
    } else if (read && source.dialect == ConfigDialect::kNeox) {
      Set("norm_eps", PythonScalar(rms || scale ? "1e-08" : "1e-05"), "default of GPT-NeoX", true);
    }
  }
}

/// Its rate grows with the batch where only a base is given.
void EffectiveRun::DeriveOfTimm() {
  const auto base = Number("lr_base"), batch = Number("micro_batch");
  if (!Has(ConfigDialect::kTimm) || Find("lr") || !base || !batch) return;
  DeriveWorld();
  const double all = *batch * Number("accumulation").value_or(1) * Number("world_size").value_or(1);
  const double times = all / Number("lr_base_size").value_or(256);
  const std::string scale = Word("lr_base_scale"), name = Word("optimizer");
  const bool root = scale.empty() ? Contains(name, "ada") || Contains(name, "lamb") : scale == "sqrt";
  From("lr_base", "lr", ConfigValue::Of(*base * (root ? std::sqrt(times) : times)));
}

/// What it takes for Adam depends on the model.
void EffectiveRun::DeriveOfOpenClip() {
  if (!Has(ConfigDialect::kOpenClip)) return;
  std::string model;
  for (const ConfigSource& source : configuration_.sources) {
    const Setting* name = source.dialect == ConfigDialect::kOpenClip ? source.Find("model") : nullptr;
    if (name) model = name->value.Shown();
  }
  const bool vit = Contains(model, "vit") || Contains(model, "ViT") || Contains(model, "VIT");
  for (const auto& [quantity, value] : {std::pair("lr", "0.0005"),
                                        {"beta1", "0.9"},
                                        {"beta2", vit ? "0.98" : "0.999"},
                                        {"eps", vit ? "1e-06" : "1e-08"}}) {
    if (!Find(quantity) && !model.empty()) Set(quantity, PythonScalar(value), "default of open_clip", true);
  }
  for (const ConfigSource& source : configuration_.sources) {
    const Setting* skip = source.Find("skip_scheduler");
    if (skip && skip->value.AsBool().value_or(false)) Set("lr_schedule", ConfigValue::Of("constant"), skip->Origin());
  }
}

void EffectiveRun::DeriveOfNanoGpt() {
  if (!Has(ConfigDialect::kNanoGpt)) return;
  bool decays = true;
  std::string origin = "default of nanoGPT";
  for (const ConfigSource& source : configuration_.sources) {
    if (const Setting* told = source.Find("decay_lr")) {
      decays = told->value.AsBool().value_or(true);
      origin = told->Origin();
      used_.try_emplace(told->key);
    }
  }
  Set("lr_schedule", ConfigValue::Of(decays ? "cosine" : "constant"), origin);
  if (!decays) Set("warmup_steps", ConfigValue::Of(int64_t{0}), origin);
  // Its steps of accumulation are those of all processes together.
  const auto micro = Number("micro_batch"), steps = Number("accumulation");
  if (micro && steps && !Find("global_batch")) {
    From("accumulation", "global_batch", ConfigValue::Of(static_cast<int64_t>(*micro * *steps)));
  }
}

/// The list of schedules: one that grows from a part of the rate is the warm-up, what follows is the schedule.
void EffectiveRun::DeriveOfMmengine() {
  if (!Has(ConfigDialect::kMmengine)) return;
  for (const ConfigSource& source : configuration_.sources) {
    if (source.dialect != ConfigDialect::kMmengine) continue;
    for (int i = 0; i < 8; ++i) {
      const std::string at = "param_scheduler." + std::to_string(i) + ".";
      const Setting* type = source.Find(at + "type");
      if (!type) type = i == 0 ? source.Find("param_scheduler.type") : nullptr;
      if (!type) continue;
      const std::string prefix = type->key.substr(0, type->key.size() - 4);
      const auto member = [&](std::string_view name) {
        const Setting* found = source.Find(prefix + std::string(name));
        if (found) used_.try_emplace(found->key);
        return found;
      };
      used_.try_emplace(type->key);
      const std::string kind = type->value.Shown();
      const Setting *begin = member("begin"), *end = member("end"), *by = member("by_epoch"),
                    *least = member("eta_min");
      const bool by_epoch = !by || by->value.AsBool().value_or(true);
      const bool first = !begin || begin->value.AsNumber().value_or(0) == 0;
      if (Contains(kind, "Linear") && first && member("start_factor") && end) {
        Set(by_epoch ? "warmup_epochs" : "warmup_steps", end->value, end->Origin());
        Set("lr_warmup_share", member("start_factor")->value, member("start_factor")->Origin());
        continue;
      }
      Set("lr_schedule", type->value, type->Origin());
      if (least) Set("min_lr", least->value, least->Origin());
      if (const Setting* share = member("eta_min_ratio")) Set("min_lr_ratio", share->value, share->Origin());
      if (const Setting* power = member("power")) Set("lr_power", power->value, power->Origin());
      const Setting *falls = by_epoch ? nullptr : member("milestones"), *factor = member("gamma");
      if (falls) Set("lr_milestones", falls->value, falls->Origin());
      if (factor) Set("lr_gamma", factor->value, factor->Origin());
      if (end && !by_epoch) Set("decay_steps", end->value, end->Origin());
      if (const Setting* length = member("T_max"); length && !by_epoch && first) {
        Set("decay_steps", length->value, length->Origin());
      }
    }
  }
  const Fact* dtype = Find("compute_dtype");
  const std::string kind = Word("compute_dtype");
  if (dtype && kind == "ampoptimwrapper") From("compute_dtype", "compute_dtype", ConfigValue::Of("float16"));
  if (dtype && kind == "optimwrapper") From("compute_dtype", "compute_dtype", ConfigValue::Of("float32"));
}

/// A plain "batch_size" is that of a process; whether of one or of all is left open where there are several.
void EffectiveRun::DeriveOwnBatch() {
  const auto length = Number("seq_length");
  if (const auto tokens = Number("batch_tokens"); tokens && length && *length > 0 && !Find("global_batch")) {
    From("batch_tokens", "global_batch", ConfigValue::Of(static_cast<int64_t>(*tokens / *length)));
  }
  if (const auto tokens = Number("micro_tokens"); tokens && length && *length > 0 && !Find("micro_batch")) {
    From("micro_tokens", "micro_batch", ConfigValue::Of(static_cast<int64_t>(*tokens / *length)));
  }
  const Fact* plain = Find("plain_batch");
  for (const ConfigSource& source : configuration_.sources) {
    const Setting* divided = source.Find("accumulation_of_all_processes");
    if (divided) used_.try_emplace(divided->key);
    const auto steps = Number("accumulation"),
               micro = Find("micro_batch") ? Number("micro_batch") : Number("plain_batch");
    if (divided && steps && micro && !Find("global_batch")) {
      From("accumulation", "global_batch", ConfigValue::Of(static_cast<int64_t>(*micro * *steps)));
    }
  }
  for (const ConfigSource& source : configuration_.sources) {  // of a loader that each process has
    if (source.Find("loader.batch_size_per_device")) facts_.erase("plain_batch");
  }
  plain = Find("plain_batch");
  if (!plain || Find("micro_batch")) return;
  if (Find("global_batch")) return;
  From("plain_batch", "micro_batch", plain->value);
}

/// Lengths in epochs, tokens and shares as steps and shares.
void EffectiveRun::DeriveLengths() {
  DeriveUnits();
  if (const auto all = LengthOf(Find("train_length"))) {
    const auto set = [&](const char* quantity) { From("train_length", quantity, ConfigValue::Of(all->number)); };
    if (all->unit == "ba" || all->unit.empty()) set("train_steps");
    if (all->unit == "ep") set("train_epochs");
    if (all->unit == "tok") set("train_tokens");
    if (all->unit == "sp") set("train_samples");
  }
  if (const Fact* given = Find("warmup_steps"); given && given->value.IsText()) {
    if (const auto warm = LengthOf(given)) {
      const char* quantity = warm->unit == "dur"   ? "warmup_ratio"
                             : warm->unit == "ep"  ? "warmup_epochs"
                             : warm->unit == "tok" ? "warmup_tokens"
                             : warm->unit == "sp"  ? "warmup_samples"
                                                   : "warmup_steps";
      const double number = warm->number;
      From("warmup_steps", quantity, ConfigValue::Of(number));
      if (warm->unit != "ba") facts_.erase("warmup_steps");
    }
  }
  const double tokens = Number("global_batch").value_or(0) * Number("seq_length").value_or(0);
  for (const auto& [of, quantity] : {std::pair("train_tokens", "train_steps"), {"warmup_tokens", "warmup_steps"}}) {
    if (Find(of) && tokens > 0 && !Find(quantity)) {
      From(of, quantity, ConfigValue::Of(std::floor(Number(of).value_or(0) / tokens)));
    }
  }
  const auto epochs = Number("train_epochs"), warm = Number("warmup_epochs");
  const Fact* steps = Find("warmup_steps");
  if (warm && (!steps || steps->by_default) && !Find("warmup_ratio")) {
    if (*warm == 0)
      From("warmup_epochs", "warmup_steps", ConfigValue::Of(int64_t{0}));
    else if (epochs && *epochs > 0)
      From("warmup_epochs", "warmup_ratio", ConfigValue::Of(*warm / *epochs));
  }
  if (epochs && Number("train_steps").value_or(0) <= 0)
    From("train_epochs", "schedule_epochs", Find("train_epochs")->value);
}

}  // namespace msprobe
