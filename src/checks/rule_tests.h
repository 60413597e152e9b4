// The tests that rules name.
#pragma once

#include "checks/check_input.h"

namespace msprobe::rule_tests {

#define MSP_RULE(id, section, test, ...) CheckVerdict test(const CheckInput& input);
#include "checks/rules_model.def"
#include "checks/rules_training.def"
// clang-format off: the order of the table
#include "checks/rules_other.def"
// clang-format on
#undef MSP_RULE

}  // namespace msprobe::rule_tests
