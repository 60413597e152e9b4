// Hyperparameters by name, as groups of optimizers and users write them.
#include <fmt/format.h>

#include <charconv>

#include "base/message.h"
#include "base/text.h"
#include "optimizer/optimizer_record.h"

namespace msprobe {
namespace {

struct NamedNumber {
  std::string_view name;
  double UpdateRule::*value;
};
constexpr NamedNumber kNumbers[] = {
    {"lr", &UpdateRule::lr},
    {"learning_rate", &UpdateRule::lr},
    {"weight_decay", &UpdateRule::weight_decay},
    {"beta1", &UpdateRule::beta1},
    {"beta2", &UpdateRule::beta2},
    {"eps", &UpdateRule::eps},
    {"epsilon", &UpdateRule::eps},
    {"momentum", &UpdateRule::momentum},
    {"dampening", &UpdateRule::dampening},
    {"beta2_decay", &UpdateRule::beta2_decay},
    {"eps1", &UpdateRule::eps1},
    {"eps2", &UpdateRule::eps2},
    {"d", &UpdateRule::d},
};

struct NamedSwitch {
  std::string_view name;
  bool UpdateRule::*value;
};
constexpr NamedSwitch kSwitches[] = {{"nesterov", &UpdateRule::nesterov},
                                     {"amsgrad", &UpdateRule::amsgrad},
                                     {"maximize", &UpdateRule::maximize},
                                     {"relative_step", &UpdateRule::relative_step},
                                     {"scale_parameter", &UpdateRule::scales_by_weight},
                                     {"capturable", &UpdateRule::in_float}};

}  // namespace

StatusOr<UpdateRule> RuleByName(const std::string& name) {
  UpdateRule rule;
  rule.kind = ParseOptimizerKind(name);
  if (rule.kind == OptimizerKind::kUnknown) {
    return UsageError(Msg("--rule: '{}' is none of SGD, Adam, AdamW, Lion, Adafactor and Muon", OneLine(name)));
  }
  if (rule.kind == OptimizerKind::kLion) rule.beta2 = 0.99;
  if (rule.kind == OptimizerKind::kMuon) rule.momentum = 0.95;
  const bool coupled = rule.kind == OptimizerKind::kAdam || rule.kind == OptimizerKind::kSgd;
  rule.decay = coupled ? DecayPlace::kCoupled : DecayPlace::kDecoupled;
  return rule;
}

Status ApplyOverrides(const OptimizerOverrides& overrides, RecordedStep* step) {
  if (overrides.clip_grad) step->clip_grad = overrides.clip_grad;
  for (UpdateRule& rule : step->groups) {
    for (const std::string& text : overrides.hyperparameters) {
      const size_t equals = text.find('=');
      if (equals == std::string::npos) return UsageError(Msg("'{}' is not NAME=VALUE, such as lr=1e-3", OneLine(text)));
      MSP_RETURN_IF_ERROR(SetHyperparameter(text.substr(0, equals), text.substr(equals + 1), &rule));
    }
  }
  return OkStatus();
}

Status SetHyperparameter(const std::string& name, const std::string& value, UpdateRule* rule) {
  for (const NamedSwitch& known : kSwitches) {
    if (known.name != name) continue;
    if (value != "true" && value != "false") {
      return UsageError(Msg("{}={}: give true or false", OneLine(name), OneLine(value)));
    }
    rule->*known.value = value == "true";
    return OkStatus();
  }
  for (const NamedNumber& known : kNumbers) {
    if (known.name != name) continue;
    double number = 0;
    const auto read = std::from_chars(value.data(), value.data() + value.size(), number);
    if (read.ec != std::errc() || read.ptr != value.data() + value.size()) {
      return UsageError(Msg("{}={}: give a number", OneLine(name), OneLine(value)));
    }
    rule->*known.value = number;
    return OkStatus();
  }
  return UsageError(
      Msg("{} is no hyperparameter that is known: give lr, beta1, beta2, eps, weight_decay, momentum, dampening, "
          "nesterov, amsgrad or maximize",
          OneLine(name)));
}

}  // namespace msprobe
