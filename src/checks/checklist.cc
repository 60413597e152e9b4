#include "checks/checklist.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "base/message.h"
#include "checks/rule_tests.h"

namespace msprobe {

Message OriginMessage(const std::string& origin) {
  constexpr std::string_view kDefault = "default of ";
  // A place in a file has its line.
  const bool told = origin.find(':') == std::string::npos && origin.find('/') == std::string::npos;
  return told && origin.starts_with(kDefault) ? Msg("default of {}", origin.substr(kDefault.size()))
         : told                               ? KnownText(origin)
                                              : Message(origin);
}
namespace {

constexpr ChecklistRule kRules[] = {
#define MSP_RULE(id, section, test, quantity, reason, fix, reason_zh, fix_zh) \
  {id, section, rule_tests::test, quantity, reason, fix, reason_zh, fix_zh},
#include "checks/rules_model.def"
#include "checks/rules_training.def"
// clang-format off: the order of the table
#include "checks/rules_other.def"
// clang-format on
#undef MSP_RULE
};

void Show(const EffectiveRun* run, std::string_view quantity, std::string* value, std::string* origin) {
  const Fact* fact = run ? run->Find(quantity) : nullptr;
  if (!fact) return;
  *value = fact->value.Shown();
  *origin = fact->origin;
}

}  // namespace

std::string_view NameOf(CheckVerdict verdict) {
  switch (verdict) {
    case CheckVerdict::kSkip: return "skip";
    case CheckVerdict::kPass: return "pass";
    case CheckVerdict::kAsk: return "ask";
    case CheckVerdict::kWarn: return "warn";
    case CheckVerdict::kFail: return "fail";
  }
  return "skip";
}

std::span<const ChecklistRule> ChecklistRules() { return kRules; }

std::vector<CheckFinding> RunChecklist(const EffectiveRun& target, const EffectiveRun* golden,
                                       std::span<const ChecklistRule> rules) {
  std::vector<CheckFinding> out;
  for (const ChecklistRule& rule : rules) {
    std::array<std::optional<CheckShown>, 2> shown;
    const CheckVerdict verdict = rule.test({&target, golden, rule.quantity, shown.data()});
    if (verdict == CheckVerdict::kSkip) continue;
    CheckFinding finding{&rule, verdict, {}, {}, {}, {}};
    Show(&target, rule.quantity, &finding.target, &finding.target_origin);
    Show(golden, rule.quantity, &finding.golden, &finding.golden_origin);
    if (shown[0]) std::tie(finding.target, finding.target_origin) = std::tie(shown[0]->value, shown[0]->origin);
    if (shown[1]) std::tie(finding.golden, finding.golden_origin) = std::tie(shown[1]->value, shown[1]->origin);
    out.push_back(std::move(finding));
  }
  return out;
}

}  // namespace msprobe
