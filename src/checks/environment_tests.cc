// The rules of the checklist about environment variables.
#include <algorithm>

#include "checks/rule_tests.h"

namespace msprobe::rule_tests {
namespace {

using Verdict = CheckVerdict;

bool OnAscend(const EffectiveRun& run) {
  return run.Has(ConfigDialect::kMindFormers) || run.Variable("ASCEND_RT_VISIBLE_DEVICES") ||
         run.Variable("ASCEND_LAUNCH_BLOCKING") || run.Variable("HCCL_DETERMINISTIC") ||
         run.Variable("HCCL_CONNECT_TIMEOUT") || run.Variable("TASK_QUEUE_ENABLE");
}

CheckShown Shown(const EffectiveRun& run, std::string_view name) {
  const Setting* variable = run.Variable(name);
  if (variable) return {variable->value.Shown(), variable->Origin()};
  const auto& sources = run.configuration().sources;
  return {"not set", sources.empty() ? std::string() : sources.front().path};
}

/// kWarn for a run in which the variable does not hold; both runs are shown.
Verdict Holds(const CheckInput& input, std::string_view name, bool (*concerns)(const EffectiveRun&),
              bool (*good)(const ConfigValue&)) {
  input.shown[0] = Shown(*input.target, name);
  if (input.golden) input.shown[1] = Shown(*input.golden, name);
  return Each(input, [&](const EffectiveRun& run) {
    if (!concerns(run)) return Verdict::kSkip;
    const Setting* variable = run.Variable(name);
    return variable && good(variable->value) ? Verdict::kPass : Verdict::kWarn;
  });
}

}  // namespace

Verdict OverflowMode(const CheckInput& input) {
  return Holds(
      input, "MS_ASCEND_CHECK_OVERFLOW_MODE",
      [](const EffectiveRun& run) { return run.Has(ConfigDialect::kMindFormers); },
      [](const ConfigValue& value) { return value.Shown() == "INFNAN_MODE"; });
}

Verdict DeterministicCommunication(const CheckInput& input) {
  return Holds(input, "HCCL_DETERMINISTIC", OnAscend,
               [](const ConfigValue& value) { return value.AsBool().value_or(false) || value.Shown() == "strict"; });
}

Verdict LaunchBlocking(const CheckInput& input) {
  return Holds(input, "ASCEND_LAUNCH_BLOCKING", OnAscend,
               [](const ConfigValue& value) { return value.AsBool().value_or(false); });
}

}  // namespace msprobe::rule_tests
