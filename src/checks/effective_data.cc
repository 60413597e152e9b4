// What a run says of its data and of what it trains.
#include <algorithm>
#include <cmath>

#include "base/file.h"
#include "base/text.h"
#include "checks/effective.h"

namespace msprobe {
namespace {

std::vector<ConfigValue> Parts(const ConfigValue& value) {
  if (value.IsList()) return value.items;
  std::vector<ConfigValue> out;
  const std::string text = value.Shown();
  for (const std::string_view part : Split(text, ' ')) {
    for (std::string_view word : Split(part, ',')) {
      while (!word.empty() && (word.front() == '[' || word.front() == '\'' || word.front() == '"'))
        word.remove_prefix(1);
      while (!word.empty() && (word.back() == ']' || word.back() == '\'' || word.back() == '"')) word.remove_suffix(1);
      if (!word.empty()) out.push_back(ConfigValue::Of(word));
    }
  }
  return out;
}

/// Shares of their sum.
std::string Shares(const std::vector<double>& weights) {
  double sum = 0;
  for (const double weight : weights) sum += weight;
  std::string out;
  for (const double weight : weights) {
    out += (out.empty() ? "" : ", ") + PyRepr(std::round(weight / (sum > 0 ? sum : 1) * 1e6) / 1e6);
  }
  return out;
}

}  // namespace

/// Files by their names, as folders differ between machines, and how much of each a blend takes.
void EffectiveRun::DeriveData() {
  if (const Fact* blend = Find("data_blend")) {
    std::vector<double> weights;
    for (const ConfigValue& part : Parts(blend->value)) weights.push_back(part.AsNumber().value_or(0));
    if (weights.size() > 1) From("data_blend", "data_blend", ConfigValue::Of(Shares(weights)));
  }
  if (const std::string loss = Word("masked_prompts"); Has(ConfigDialect::kSwift) && loss != "true") {  // of weights
    From("masked_prompts", "masked_prompts", ConfigValue::Of(!StartsWith(loss, "all")));
  }
  for (const ConfigSource& source : configuration_.sources) {  // pre-training packs unless it is told not to
    const Setting* stage = source.Find("stage");
    const Fact* packed = Find("packing");
    const bool pretrains = source.dialect == ConfigDialect::kLlamaFactory && stage && stage->value.Shown() == "pt";
    if (pretrains && packed && packed->by_default) Set("packing", ConfigValue::Of(true), packed->origin, true);
  }
  const Fact* path = Find("data_path");
  if (!path) return;
  std::vector<double> weights;
  std::string files;
  for (const ConfigValue& part : Parts(path->value)) {
    if (const auto weight = part.AsNumber()) {
      weights.push_back(*weight);
    } else {
      files += (files.empty() ? "" : ", ") + std::string(BaseName(part.Shown()));
    }
  }
  if (weights.size() > 1) From("data_path", "data_blend", ConfigValue::Of(Shares(weights)));
  From("data_path", "data_path", ConfigValue::Of(files));
}

/// It has flags for the other layers, and a name of its own for what follows the attention.
void EffectiveRun::AddModulesOfTorchtune(std::vector<std::string>* names) {
  for (std::string& name : *names) {
    if (name == "output_proj") name = "o_proj";
  }
  for (const ConfigSource& source : configuration_.sources) {
    if (source.dialect != ConfigDialect::kTorchtune) continue;
    const auto on = [&](std::string_view key) {
      const Setting* flag = source.Find(key);
      if (flag) used_.insert_or_assign(flag->key, "lora_targets");
      return flag && flag->value.AsBool().value_or(false);
    };
    if (on("model.apply_lora_to_mlp")) names->insert(names->end(), {"gate_proj", "up_proj", "down_proj"});
    if (on("model.apply_lora_to_output")) names->emplace_back("lm_head");
  }
}

/// Whether all weights are trained or an adapter.
void EffectiveRun::DeriveAdapter() {
  std::string kind = Word("finetuning");
  const Fact* told = Find("finetuning");
  if (Has(ConfigDialect::kPeft) && (!told || told->by_default)) {  // what is given an adapter trains it
    kind = "lora";
    if (Find("lora_rank")) From("lora_rank", "finetuning", ConfigValue::Of(kind));
  }
  if (kind == "true") kind = "lora";
  if (kind == "false" || kind == "none") kind = "full";
  if (kind.empty() && Number("lora_rank").value_or(0) > 0) kind = "lora";
  if (!kind.empty()) From(Find("finetuning") ? "finetuning" : "lora_rank", "adapter", ConfigValue::Of(kind));
  if (kind == "lora" && !Find("lora_alpha") && Has(ConfigDialect::kLlamaFactory) && Find("lora_rank")) {
    const Fact* rank = Find("lora_rank");
    Set("lora_alpha", ConfigValue::Of(2 * rank->value.AsNumber().value_or(0)), "twice the rank by default", true);
  }
  if (const Fact* targets = Find("lora_targets")) {  // in no order
    std::vector<std::string> names;
    for (const ConfigValue& part : Parts(targets->value)) names.push_back(part.Shown());
    if (Has(ConfigDialect::kTorchtune)) AddModulesOfTorchtune(&names);
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
    From("lora_targets", "lora_targets", ConfigValue::Of(text));
  }
  // Those of a model without experts, whose routers count, too.
  const bool all = Word("lora_targets") == "down_proj, gate_proj, k_proj, o_proj, q_proj, up_proj, v_proj";
  if (Word("lora_targets") == "all" || (all && !IsMoe()))
    From("lora_targets", "lora_targets", ConfigValue::Of("all-linear"));
  if (kind == "full") {
    for (const char* part : {"lora_rank", "lora_alpha", "lora_dropout", "lora_targets"}) facts_.erase(part);
  }
  // Names of templates have no case.
  if (Find("chat_template")) From("chat_template", "chat_template", ConfigValue::Of(Word("chat_template")));
}

}  // namespace msprobe
