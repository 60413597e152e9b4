// The rules of mindstudio-probe by which a value of a series is an anomaly.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace msprobe {

struct AlertRule {
  enum class Kind { kTurbulence, kNan };
  Kind kind;
  std::optional<double> threshold;  // kTurbulence has one
};

/// The name of a rule in configurations and messages.
const char* AlertRuleName(AlertRule::Kind kind);

/// Judges values one after another, each against the running mean of the magnitudes before it.
class AlertRules {
 public:
  struct Alarm {
    AlertRule::Kind kind;
    double mean;  // before the value
  };

  explicit AlertRules(std::vector<AlertRule> rules) : rules_(std::move(rules)) {}
  bool empty() const { return rules_.empty(); }

  /// The first rule, in the order of the configuration, that the value breaks. Turbulence is told of norms and means
  /// only. The running mean of a series begins with its first value and takes no value that is not finite.
  std::optional<Alarm> Judge(const std::string& series, const std::string& statistic, double value);

 private:
  std::vector<AlertRule> rules_;
  std::unordered_map<std::string, double> means_;
};

}  // namespace msprobe
