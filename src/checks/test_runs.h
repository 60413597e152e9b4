// Runs of given settings, for tests of the rules.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "checks/checklist.h"

namespace msprobe {

using SettingPairs = std::vector<std::pair<std::string, std::string>>;

inline EffectiveRun RunOf(ConfigDialect dialect, const SettingPairs& settings) {
  ConfigSource source;
  source.dialect = dialect;
  for (const auto& [key, value] : settings) source.settings.push_back({key, PythonScalar(value), "a.yaml", 1});
  Configuration configuration;
  configuration.sources = {source};
  return EffectiveRun(configuration);
}

inline std::string VerdictOf(const std::vector<CheckFinding>& findings, std::string_view rule) {
  for (const CheckFinding& finding : findings) {
    if (finding.rule->id == rule) return std::string(NameOf(finding.verdict));
  }
  return "nothing";
}

inline std::string VerdictBetween(const EffectiveRun& a, const EffectiveRun& b, std::string_view rule) {
  return VerdictOf(RunChecklist(a, &b), rule);
}

}  // namespace msprobe
