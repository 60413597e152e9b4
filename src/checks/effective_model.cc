// Quantities of a model that are computed from what its configuration says.
#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "checks/effective.h"

namespace msprobe {
namespace {

struct ModelFamily {
  std::string_view begins, norm, position, tied, linear_bias, qkv_bias, qk_norm;
};

constexpr ModelFamily kFamilies[] = {
#define MSP_FAMILY(begins, norm, position, tied, linear_bias, qkv_bias, qk_norm) \
  {begins, norm, position, tied, linear_bias, qkv_bias, qk_norm},
#include "checks/model_families.def"
#undef MSP_FAMILY
};

/// That whose name is the longest beginning of the type; null.
const ModelFamily* FamilyOf(std::string_view type) {
  const ModelFamily* out = nullptr;
  for (const ModelFamily& family : kFamilies) {
    if (StartsWith(type, family.begins) && (!out || family.begins.size() > out->begins.size())) out = &family;
  }
  return out;
}

double RoundUp(double value, double to) { return to > 0 ? std::ceil(value / to) * to : value; }

}  // namespace

void EffectiveRun::DeriveAttention() {
  const double heads = Number("num_heads").value_or(0);
  if (Has(ConfigDialect::kMegatron)) {
    bool grouped = false;
    for (const ConfigSource& source : configuration_.sources) {
      if (const Setting* flag = source.Find("group_query_attention")) grouped = flag->value.AsBool().value_or(true);
    }
    if (!grouped && heads > 0) From("num_heads", "kv_heads", ConfigValue::Of(static_cast<int64_t>(heads)));
  } else if (!Find("kv_heads") && heads > 0 && !open_.contains("kv_heads") &&
             (!HasOwnProgram() || Has(ConfigDialect::kNanoGpt) || Has(ConfigDialect::kHfModel))) {
    From("num_heads", "kv_heads", ConfigValue::Of(static_cast<int64_t>(heads)));
  }
  // Latent attention normalises what it compresses, whatever the switch for query and key is called or says.
  if (Number("kv_lora_rank").value_or(0) > 0) facts_.erase("qk_norm");
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
  // Its layers of q, k and v have one if any linear layer has.
  if (Has(ConfigDialect::kMegatron) && Truth("linear_bias").value_or(false)) {
    From("linear_bias", "qkv_bias", ConfigValue::Of(true));
  }
  const std::string position = Word("position_code");  // of GPT-NeoX
  if (position == "absolute" || position == "learnable" || position == "learned_pos_emb") {
    From("position_code", "position_code", ConfigValue::Of("learned_absolute"));
  }
  if (position == "rotary" || position == "rotary_embedding")
    From("position_code", "position_code", ConfigValue::Of("rope"));
  if (position == "learned") From("position_code", "position_code", ConfigValue::Of("learned_absolute"));
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
  std::string act = Word("activation");
  act = act.substr(act.rfind('.') + 1);  // nn.GELU
  for (const std::string_view tanh :
       {"gelu_new", "gelu_fast", "gelu_pytorch_tanh", "gelu_approximate", "gelu_python_tanh"}) {
    if (act == tanh) act = "gelu_tanh";
  }
  if (Word("activation") != act) From("activation", "activation", ConfigValue::Of(act));
  if (act == "silu" || act == "swish" || Contains(act, "swiglu"))
    From("activation", "activation", ConfigValue::Of("swiglu"));
}

/// What the class of a model decides, and only that: of a family that is not known it stays unknown.
void EffectiveRun::DeriveOfModelType() {
  for (const ConfigSource& source : configuration_.sources) {
    const bool second = source.dialect == ConfigDialect::kMindFormers;
    if (source.dialect != ConfigDialect::kHfModel && !second) continue;
    const Setting *type = source.Find(second ? "model.model_config.model_type" : "model_type"),
                  *text = source.Find("text_config.model_type");
    const std::string kind = text ? text->value.Shown() : type ? type->value.Shown() : "";
    const ModelFamily* family = FamilyOf(kind);
    const bool rms = source.Find("rms_norm_eps") || source.Find("text_config.rms_norm_eps");
    if (rms && !Find("normalization")) Set("normalization", ConfigValue::Of("RMSNorm"), source.path);
    const Setting* windowed = source.Find("use_sliding_window");
    if (windowed && !windowed->value.AsBool().value_or(true)) facts_.erase("sliding_window");
    const Setting* one = source.Find("multi_query");  // one head of keys and values
    if (one && one->value.AsBool().value_or(false) && !source.Find("num_kv_heads")) {
      Set("kv_heads", ConfigValue::Of(int64_t{1}), one->Origin());
    }
    if (kind == "mixtral") Set("norm_topk", ConfigValue::Of(true), "default of " + kind, true);
    if (!family) continue;
    for (const auto& [quantity, value] : {std::pair("normalization", family->norm),
                                          {"position_code", family->position},
                                          {"tied_embeddings", family->tied},
                                          {"linear_bias", family->linear_bias},
                                          {"qkv_bias", family->qkv_bias},
                                          {"qk_norm", family->qk_norm}}) {
      if (!value.empty() && !Find(quantity)) Set(quantity, PythonScalar(value), "default of " + kind, true);
    }
  }
}

void EffectiveRun::DeriveSizes() {
  const bool swiglu = Word("activation") == "swiglu";
  const auto hidden = Number("hidden_size");
  if (!Find("intermediate_size") && hidden) {
    if (Has(ConfigDialect::kMegatron) || Has(ConfigDialect::kNeox) || Has(ConfigDialect::kNemo)) {
      const double size =
          swiglu && Has(ConfigDialect::kMegatron) ? std::floor(std::floor(4 * *hidden * 2 / 3) / 64) * 64 : 4 * *hidden;
      From("hidden_size", "intermediate_size", ConfigValue::Of(static_cast<int64_t>(size)));
    } else if (Has(ConfigDialect::kMindFormers)) {
      double size = std::floor(2 * 4 * *hidden / 3);
      if (const auto factor = Number("ffn_multiplier")) size = std::floor(size * *factor);
      size = RoundUp(size, Number("multiple_of").value_or(256));
      From("multiple_of", "intermediate_size", ConfigValue::Of(static_cast<int64_t>(size)));
    }
  }
  if (const auto size = Number("intermediate_size"); size && Has(ConfigDialect::kNeox)) {
    // A gated one is made smaller by a third, and both are rounded up.
    const bool gated = Contains(Word("activation"), "glu");
    const double used = gated ? RoundUp(std::floor(std::floor(*size * 2 / 3) / 2), 256) : RoundUp(*size, 512);
    From("intermediate_size", "intermediate_size", ConfigValue::Of(static_cast<int64_t>(used)));
  }
  if (const auto vocab = Number("vocab_size")) {
    double padded = *vocab;
    if (Has(ConfigDialect::kMegatron)) {
      double divisor = 128;
      for (const ConfigSource& source : configuration_.sources) {
        if (const Setting* by = source.Find("make_vocab_size_divisible_by")) {
          divisor = by->value.AsNumber().value_or(divisor);
          if (divisor != 128) Set("vocab_divisor", by->value, by->Origin());
        }
        if (const Setting* by = source.Find("padded_vocab_size")) padded = by->value.AsNumber().value_or(padded);
      }
      if (padded == *vocab) padded = RoundUp(*vocab, divisor * Number("model_parallel").value_or(1));
    }
    // Rows of the embedding that only fill it up.
    constexpr double kMostFilled = 1.05;
    const auto rows = Number("embedding_rows");
    if (rows && *rows >= *vocab && *rows <= kMostFilled * *vocab) padded = *rows;
    From("vocab_size", "padded_vocab", ConfigValue::Of(static_cast<int64_t>(padded)));
  }
}

/// How the rotary embedding is scaled: the factor where it is switched on, else 1, and what goes with it.
void EffectiveRun::DeriveRotary() {
  std::string scaling = Word("use_rope_scaling");
  const bool scaled = !scaling.empty() && scaling != "none" && scaling != "false" && scaling != "default";
  if (!scaled) {
    if (!KnowsModel()) return;
    const Fact* told = Find("use_rope_scaling");
    return Set("rope_factor", ConfigValue::Of(1.0), told ? told->origin : "not set", true);
  }
  const Fact* factor = Find("rope_scaling");
  Set("rope_factor", factor ? factor->value : ConfigValue::Of(8.0), factor ? factor->origin : "default of Megatron");
  if (scaling == "true") scaling = "llama3";  // the flag of Megatron
  if (scaling == "pi") scaling = "linear";
  if (scaling == "ntk") scaling = "dynamic";
  From("use_rope_scaling", "rope_kind_name", ConfigValue::Of(scaling));
  struct Preset {
    std::string_view kind;
    const char *quantity, *value;
  };
  for (const Preset& preset : {Preset{"llama3", "rope_low_freq_factor", "1"},
                               {"llama3", "rope_high_freq_factor", "4"},
                               {"llama3", "rope_original_length", "8192"},
                               {"yarn", "rope_beta_fast", "32"},
                               {"yarn", "rope_beta_slow", "1"}}) {
    if (preset.kind != scaling || Find(preset.quantity)) continue;
    Set(preset.quantity, PythonScalar(preset.value), "default of " + scaling, true);
  }
}

void EffectiveRun::DeriveMoe() {
  if (!IsMoe()) return;
  DeriveSharedExperts();
  DeriveDenseLayers();
  DeriveAuxLoss();
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

/// Models of transformers add it to the loss only where they give out what the router says.
void EffectiveRun::DeriveAuxLoss() {
  const Setting *factor = nullptr, *given = nullptr;
  for (const ConfigSource& source : configuration_.sources) {
    for (const Setting& setting : source.settings) {
      const std::string_view name = std::string_view(setting.key).substr(setting.key.rfind('.') + 1);
      if (name == "output_router_logits") given = &setting;
      if (name == "router_aux_loss_coef") factor = source.dialect == ConfigDialect::kHfModel ? &setting : nullptr;
    }
  }
  if (given) used_.try_emplace(given->key);
  const Fact* loss = Find("aux_loss");
  const bool of_model = factor && loss && loss->origin == factor->Origin() && !Has(ConfigDialect::kMindFormers);
  if (!of_model || (given && given->value.AsBool().value_or(false))) return;
  Set("aux_loss", ConfigValue::Of(0.0), given ? given->Origin() : factor->Origin());
}

/// "([0]*3+[1]*24)" of Megatron: the layers in front that have no experts. A number is a period, as of those that have
/// them in every layer.
void EffectiveRun::DeriveDenseLayers() {
  if (Find("dense_layers") || !Has(ConfigDialect::kMegatron)) return;
  for (const ConfigSource& source : configuration_.sources) {
    const Setting* layers = source.Find("moe_layer_freq");
    if (!layers) continue;
    int64_t dense = 0;
    bool known = true;
    std::string text = layers->value.IsList() ? std::string() : layers->value.Shown();
    for (const ConfigValue& item : layers->value.items) text += item.Shown();  // a shell cuts it at its brackets
    for (std::string_view part : Split(text, '+')) {
      part.remove_prefix(std::min(part.find_first_not_of("( '\""), part.size()));
      const size_t star = part.find('*');
      const bool zeros = StartsWith(part, "[0]"), ones = StartsWith(part, "[1]") || StartsWith(part, "1");
      if (ones) break;
      const auto times = PythonScalar(part.substr(std::min(star + 1, part.size()))).AsNumber();
      if (zeros && star == std::string_view::npos) {
        ++dense;
      } else if (zeros && times) {
        dense += static_cast<int64_t>(*times);
      } else {
        known = false;
        break;
      }
    }
    if (!known) continue;
    used_.try_emplace(layers->key);
    Set("dense_layers", ConfigValue::Of(dense), layers->Origin());
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

}  // namespace msprobe
