// A call that was made on both sides, judged by mindstudio-probe's standards.
#pragma once

#include "lab/check_process.h"
#include "lab/check_tables.h"
#include "lab/standards/standard.h"

namespace msprobe {

/// `api` as "linalg.inv". The answer's tensors are used up.
CheckedCall JudgeCall(const std::string& full, const std::string& api, bool backward_wanted, LabFramework framework,
                      StandardRelease release, CallAnswer&& answer);

/// Where no standard of mindstudio-probe is meant for a call: the comparison with float64 says its statuses.
void JudgeByFloat64(CheckedCall* call);

/// A call that was not made, and why.
CheckedCall SkippedCall(const std::string& full, LabFramework framework, const std::string& why);

}  // namespace msprobe
