// The checklist before two trainings are compared: a table of rules over what both are configured with.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/language.h"
#include "checks/check_input.h"

namespace msprobe {

/// Where a value is from, which may be what the program says: "default of Megatron".
Message OriginMessage(const std::string& origin);

struct ChecklistRule {
  std::string_view id, section;
  CheckVerdict (*test)(const CheckInput& input);
  std::string_view quantity;  // whose values are shown
  std::string_view reason, fix, reason_zh, fix_zh;
};

/// In the order of the table.
std::span<const ChecklistRule> ChecklistRules();

struct CheckFinding {
  const ChecklistRule* rule;
  CheckVerdict verdict;
  std::string target, golden;                // values, "" if not known
  std::string target_origin, golden_origin;  // file:line, or whose default

  /// Of what is asked no difference is known: it says why.
  std::string_view Reason(Language language) const;
  std::string_view Fix(Language language) const { return language == Language::kChinese ? rule->fix_zh : rule->fix; }
};

/// One for each rule that applies. Rules about a single run are asked of both, also where both agree; the worse answer
/// counts.
std::vector<CheckFinding> RunChecklist(const EffectiveRun& target, const EffectiveRun* golden,
                                       std::span<const ChecklistRule> rules = ChecklistRules());

}  // namespace msprobe
