// Units of programs that say them in a setting of their own, and what a number means where nobody says its unit.
#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>

#include "base/text.h"
#include "checks/effective.h"
#include "config/stack/stacks.h"

namespace msprobe {
namespace {

/// In whole numbers, and rounded up to what layers are padded to.
std::vector<double> Rounded(std::initializer_list<double> sizes) {
  std::vector<double> out;
  for (const double size : sizes) {
    out.push_back(std::floor(size));
    for (const double multiple : {64.0, 128.0, 256.0}) out.push_back(std::ceil(size / multiple) * multiple);
  }
  return out;
}

}  // namespace

/// "units: tokens" beside a length.
void EffectiveRun::DeriveUnits() {
  for (const ConfigSource& source : configuration_.sources) {
    for (const Setting& setting : source.settings) {
      const size_t dot = setting.key.rfind('.');
      const std::string_view section = std::string_view(setting.key).substr(0, dot == std::string::npos ? 0 : dot);
      const std::string_view name = std::string_view(setting.key).substr(dot == std::string::npos ? 0 : dot + 1);
      if (name != "units" && name != "unit" && name != "warmup_unit" && name != "warmup_units") continue;
      const Setting* warm = nullptr;
      for (const Setting& other : source.settings) {
        const Fact* steps = Find("warmup_steps");
        const bool beside = other.key.size() > section.size() && StartsWith(other.key, section);
        if (beside && steps && steps->origin == other.Origin() && other.key != setting.key) warm = &other;
      }
      const std::string unit = setting.value.Shown();
      const char* quantity = StartsWith(unit, "token")    ? "warmup_tokens"
                             : StartsWith(unit, "sample") ? "warmup_samples"
                             : StartsWith(unit, "epoch")  ? "warmup_epochs"
                                                          : nullptr;
      if (!warm) continue;
      used_.try_emplace(setting.key);
      if (!quantity) continue;
      From("warmup_steps", quantity, ConfigValue(Find("warmup_steps")->value));
      facts_.erase("warmup_steps");
    }
  }
}

/// A divergence counts in the loss, in the rewards, or not at all.
void EffectiveRun::DeriveDivergence() {
  const auto in_loss = Truth("policy_uses_kl"), in_rewards = Truth("policy_rewards_kl");
  if (in_loss.value_or(false)) return;
  if (in_rewards.value_or(false)) {
    const Fact* told = Find("policy_kl_of_rewards");
    if (!told) facts_.erase("policy_kl");
    if (told) From("policy_kl_of_rewards", "policy_kl", ConfigValue(told->value));
  } else if (in_loss) {
    From("policy_uses_kl", "policy_kl", ConfigValue::Of(0.0));
  }
}

/// Names of estimators of advantages.
void EffectiveRun::DerivePolicy() {
  const std::string name = Word("policy_advantage");
  struct Alias {
    std::string_view name, means;
  };
  for (const Alias& one : {Alias{"group_norm", "grpo"},
                           {"reinforce", "reinforce_plus_plus"},
                           {"reinforce++", "reinforce_plus_plus"},
                           {"reinforce_baseline", "reinforce_plus_plus_baseline"},
                           {"reinforce++_baseline", "reinforce_plus_plus_baseline"},
                           {"reinforce++-baseline", "reinforce_plus_plus_baseline"},
                           {"dr_grpo", "grpo without division by the deviation"}}) {
    if (one.name == name) From("policy_advantage", "policy_advantage", ConfigValue::Of(one.means));
  }
}

/// Trainers on top of that of transformers count completions, several of them for a prompt; others count prompts.
void EffectiveRun::DeriveCompletions() {
  const auto samples = Number("policy_samples"), completions = Number("global_batch");
  const bool trainer = std::any_of(dialects_.begin(), dialects_.end(), [](ConfigDialect dialect) {
    const StackKind* stack = FindStack(dialect);
    return stack && stack->base == ConfigDialect::kHfTrainer;
  });
  if (!trainer || !samples || *samples <= 1 || !completions) return;
  double generated = *completions;
  for (const ConfigSource& source : configuration_.sources) {
    const Setting *all = source.Find("generation_batch_size"), *steps = source.Find("steps_per_generation");
    if (steps && steps->value.AsNumber()) {
      generated = *completions / std::max(1.0, Number("accumulation").value_or(1)) * *steps->value.AsNumber();
    }
    if (all && all->value.AsNumber()) generated = *all->value.AsNumber();
  }
  From("global_batch", "update_samples", ConfigValue::Of(static_cast<int64_t>(*completions)));
  From("global_batch", "global_batch", ConfigValue::Of(static_cast<int64_t>(generated / *samples)));
}

bool EffectiveRun::AccumulatesByOtherName() const {
  for (const ConfigSource& source : configuration_.sources) {
    if (source.dialect != ConfigDialect::kOwn) continue;
    for (const Setting& setting : source.settings) {
      const bool number = setting.value.kind == ConfigValue::Kind::kInt && setting.value.integer > 1;
      const bool named = Contains(setting.key, "accum") || Contains(setting.key, "micro_batches") ||
                         Contains(setting.key, "num_micro") || Contains(setting.key, "update_freq");
      if (number && named && !used_.contains(setting.key)) return true;
    }
  }
  return false;
}

void EffectiveRun::ReadOtherUnits() {
  const double batch = Number("global_batch").value_or(0), length = Number("seq_length").value_or(0);
  const double rate = Number("lr").value_or(0), warm = Number("warmup").value_or(0);
  const auto may_be = [&](std::string_view quantity, const std::vector<double>& values) {
    const auto fact = facts_.find(quantity);
    if (fact == facts_.end() || !fact->second.by_name) return;
    for (const double value : values) {
      if (std::isfinite(value) && value > 0) fact->second.also.push_back(value);
    }
  };
  const auto number = [&](std::string_view quantity) { return Number(quantity).value_or(0); };
  // Steps, or samples, or tokens; with the warm-up or without.
  for (const char* quantity : {"warmup", "decay_end", "train_steps"}) {
    const double value = number(quantity);
    may_be(quantity, {std::floor(value / (batch * length)), std::floor(value / batch)});
  }
  may_be("decay_end", {number("decay_end") + warm, number("decay_end") - warm, number("train_steps")});
  // A rate, or its share of the highest one.
  may_be("min_lr", {number("min_lr") * rate, rate > 0 ? number("min_lr") / rate : 0});
  may_be("seq_length", {length - 1, length + 1});
  may_be("global_batch", {length > 0 ? batch / length : 0, batch * number("accumulation"),
                          batch * number("data_parallel"), batch * number("accumulation") * number("data_parallel")});
  // The columns of both halves of a gated layer, or of one.
  const double columns = number("intermediate_size");
  if (Word("activation") == "swiglu" || Find("ffn_ratio")) {
    may_be("intermediate_size", Rounded({columns, columns / 2, columns * 2, columns * 2 / 3, columns / 3}));
  }
}

}  // namespace msprobe
