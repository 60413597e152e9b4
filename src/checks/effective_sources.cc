// Sources of an effective configuration that say their quantities in a way of their own.
#include <algorithm>
#include <string_view>

#include "base/text.h"
#include "checks/effective.h"

namespace msprobe {

/// What PyTorch printed of an optimizer is what it computes with.
void EffectiveRun::ReadOptimizerGroups() {
  for (const ConfigSource& source : configuration_.sources) {
    if (source.dialect != ConfigDialect::kTorchLog) continue;
    if (const Setting* type = source.Find("type")) Set("optimizer", type->value, type->Origin());
    std::optional<double> most, least;
    for (const Setting& setting : source.settings) {
      const std::string name = setting.key.substr(setting.key.rfind('.') + 1);
      if (name == "eps") Set("eps", setting.value, setting.Origin());
      if (name == "betas" && setting.value.items.size() == 2) {
        Set("beta1", setting.value.items[0], setting.Origin());
        Set("beta2", setting.value.items[1], setting.Origin());
      }
      const auto decay = name == "weight_decay" ? setting.value.AsNumber() : std::nullopt;
      if (!decay) continue;
      if (!most || *decay > *most) Set("weight_decay", setting.value, setting.Origin());
      most = std::max(most.value_or(*decay), *decay);
      least = std::min(least.value_or(*decay), *decay);
      Set("undecayed", ConfigValue::Of(*least == 0), setting.Origin());
    }
  }
}

/// tokenizer.bos_token of its files is the quantity tokenizer_bos_token.
void EffectiveRun::ReadVersions() {
  std::string text;
  for (const std::string_view name : {"torch", "torch-npu", "torch_npu", "mindspore", "mindformers", "transformers",
                                      "megatron-core", "deepspeed", "numpy"}) {
    const std::string version = Package(name);
    if (!version.empty()) text += (text.empty() ? "" : ", ") + std::string(name) + " " + version;
  }
  if (!text.empty()) Set("versions", ConfigValue::Of(text), "packages");
}

void EffectiveRun::ReadTokenizer() {
  for (const ConfigSource& source : configuration_.sources) {
    if (source.dialect != ConfigDialect::kTokenizer) continue;
    for (const Setting& setting : source.settings) {
      std::string quantity = setting.key;
      std::replace(quantity.begin(), quantity.end(), '.', '_');
      Set(quantity, setting.value, setting.Origin());
    }
  }
}

/// What DeepSpeed takes for an optimizer and a schedule that its file names without saying more; "auto" leaves it to
/// the trainer.
void EffectiveRun::ReadDeepSpeedDefaults() {
  struct Preset {
    std::string_view section, key, quantity, value;
  };
  static constexpr Preset kPresets[] = {{"optimizer", "lr", "lr", "0.001"},
                                        {"optimizer", "betas", "beta1", "0.9"},
                                        {"optimizer", "betas", "beta2", "0.999"},
                                        {"optimizer", "eps", "eps", "1e-08"},
                                        {"optimizer", "weight_decay", "weight_decay", "0"},
                                        {"scheduler", "warmup_num_steps", "warmup_steps", "1000"}};
  for (const ConfigSource& source : configuration_.sources) {
    if (source.dialect != ConfigDialect::kDeepSpeed) continue;
    for (const Preset& preset : kPresets) {
      const std::string section(preset.section);
      const bool named = source.Find(section + ".type") != nullptr;
      if (!named || Find(preset.quantity) || source.Find(section + ".params." + std::string(preset.key))) continue;
      Set(std::string(preset.quantity), PythonScalar(preset.value), "default of DeepSpeed", true);
    }
  }
}

}  // namespace msprobe
