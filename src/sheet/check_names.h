// How the tables of acc_check are called.
#pragma once

#include <string>
#include <string_view>

namespace msprobe {

inline constexpr std::string_view kCheckResultPrefix = "accuracy_checking_result_",
                                  kCheckDetailsPrefix = "accuracy_checking_details_",
                                  kCheckFloat64Prefix = "accuracy_checking_float64_";

/// "dir/accuracy_checking_float64_{time}.csv".
bool IsCheckFloat64Name(std::string_view path);
/// "{time}" of such a path.
std::string_view CheckTimeOf(std::string_view path);

}  // namespace msprobe
