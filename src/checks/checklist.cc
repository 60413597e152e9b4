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
    case CheckVerdict::kUnseen: return "not seen";
    case CheckVerdict::kPass: return "pass";
    case CheckVerdict::kAsk: return "ask";
    case CheckVerdict::kWarn: return "warn";
    case CheckVerdict::kFail: return "fail";
  }
  return "skip";
}

std::string_view CheckFinding::Reason(Language language) const {
  const bool zh = language == Language::kChinese;
  // Those of them look into the source, and say so.
  const bool states = rule->test != rule_tests::AskAlways && rule->test != rule_tests::AskUnlessEqual &&
                      rule->test != rule_tests::AskDecay && rule->test != rule_tests::ResidualAdd &&
                      rule->test != rule_tests::SameVersions && rule->test != rule_tests::RotaryType &&
                      rule->test != rule_tests::TokensInRange;
  if (verdict != CheckVerdict::kAsk || !states) return zh ? rule->reason_zh : rule->reason;
  if (!target.empty() && !golden.empty()) {
    return zh ? "两侧都给出了，但是否一致无法判断" : "both sides say it, and whether they mean the same is not known";
  }
  if (target.empty() && golden.empty())
    return zh ? "没有文件给出它，未比较" : "no file says it, so it was not compared";
  return zh ? "只有一侧给出，另一侧的值未知，未比较"
            : "one side says it, and what the other takes is not known, so it was not compared";
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
    // Of what neither side says nothing was compared.
    const bool empty = finding.target.empty() && finding.golden.empty();
    if (verdict == CheckVerdict::kPass && empty) finding.verdict = CheckVerdict::kUnseen;
    out.push_back(std::move(finding));
  }
  return out;
}

}  // namespace msprobe
