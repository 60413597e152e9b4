#include "checks/effective.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "config/stack/stacks.h"

namespace msprobe {
namespace {

std::string LowerText(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; });
  return text;
}

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
  for (ConfigSource& source : configuration_.sources) {
    if (source.dialect != ConfigDialect::kNeox) continue;  // it takes both spellings
    for (Setting& setting : source.settings) std::replace(setting.key.begin(), setting.key.end(), '-', '_');
  }
  FindOwnPrograms();
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
  DeriveOfPrograms();
  DeriveAttention();
  DeriveWindow();
  DeriveActivation();
  DeriveOfModelType();
  DeriveSizes();
  DeriveRotary();
  DeriveMoe();
  DeriveBatch();
  DeriveOptimizer();
  DerivePrecision();
  DeriveLossScale();
  DeriveData();
  DeriveAdapter();
  DerivePolicy();
  ReadOtherUnits();
}

bool EffectiveRun::Has(ConfigDialect dialect) const {
  return std::find(dialects_.begin(), dialects_.end(), dialect) != dialects_.end();
}

bool EffectiveRun::HasOwnProgram() const {
  return std::any_of(dialects_.begin(), dialects_.end(), [](ConfigDialect dialect) {
    const StackKind* stack = FindStack(dialect);
    return dialect == ConfigDialect::kOwn || (stack && stack->base == ConfigDialect::kOwn);
  });
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
  if (!by_default) open_.erase(quantity);
}

void EffectiveRun::From(std::string_view source, const std::string& quantity, ConfigValue value) {
  const Fact* fact = Find(source);
  const bool by_default = fact && fact->by_default, by_name = fact && fact->by_name;
  Set(quantity, std::move(value), fact ? std::string(fact->origin) : std::string(), by_default);
  facts_[quantity].by_name = by_name;
}

}  // namespace msprobe
