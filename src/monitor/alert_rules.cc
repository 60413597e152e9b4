#include "monitor/alert_rules.h"

#include <cmath>

namespace msprobe {
namespace {

constexpr double kMemory = 0.99;

bool Breaks(const AlertRule& rule, double value, double mean) {
  if (rule.kind == AlertRule::Kind::kTurbulence) return std::fabs(value) > mean * (1 + rule.threshold.value_or(0));
  return std::isnan(value) || (rule.threshold && std::fabs(value) > *rule.threshold);
}

}  // namespace

const char* AlertRuleName(AlertRule::Kind kind) {
  return kind == AlertRule::Kind::kTurbulence ? "AnomalyTurbulence" : "AnomalyNan";
}

std::optional<AlertRules::Alarm> AlertRules::Judge(const std::string& series, const std::string& statistic,
                                                   double value) {
  const double size = std::fabs(value);
  double& mean =
      means_.try_emplace(series + "\n" + statistic, std::isfinite(value) ? size : std::nan("")).first->second;
  if (std::isnan(mean) && std::isfinite(value)) mean = size;
  const double before = mean;
  if (std::isfinite(value)) mean = kMemory * before + (1 - kMemory) * size;
  for (const AlertRule& rule : rules_) {
    if (!Breaks(rule, value, before)) continue;
    if (rule.kind == AlertRule::Kind::kTurbulence && statistic != "norm" && statistic != "mean") return std::nullopt;
    return Alarm{rule.kind, before};
  }
  return std::nullopt;
}

}  // namespace msprobe
