// The tests that rules name.
#pragma once

#include <functional>

#include "checks/check_input.h"

namespace msprobe::rule_tests {

/// As numbers, as truths, or as words without case and prefixes of types.
bool Same(const ConfigValue& a, const ConfigValue& b);
/// `different` if both are known and differ, ask if one is not known or may say the same in another unit; of what a
/// file of no known stack says against a default at most warn.
CheckVerdict CompareFacts(const Fact* a, const Fact* b, CheckVerdict different);
/// `different` if both are known and differ, ask if one is not known.
CheckVerdict Compare(const CheckInput& input, std::string_view quantity, CheckVerdict different);
/// The worst answer of the runs.
CheckVerdict Each(const CheckInput& input, const std::function<CheckVerdict(const EffectiveRun&)>& test);

#define MSP_RULE(id, section, test, ...) CheckVerdict test(const CheckInput& input);
#include "checks/rules_model.def"
#include "checks/rules_training.def"
// clang-format off: the order of the table
#include "checks/rules_other.def"
// clang-format on
#undef MSP_RULE

}  // namespace msprobe::rule_tests
