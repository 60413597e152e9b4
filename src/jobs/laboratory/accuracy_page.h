// What acc_check found, in the page of the HTML report.
#pragma once

#include <string>

#include "base/status.h"
#include "lab/acc_check.h"

namespace msprobe {

/// Writes accuracy_checking_float64_{time}.html beside the table of that name, with its results, the worst first, and
/// the functions they are of. The path of the page; "", and nothing is written, if this msprobe was built without it.
StatusOr<std::string> WriteAccuracyPage(const std::string& dump, const AccCheckReport& report);

}  // namespace msprobe
