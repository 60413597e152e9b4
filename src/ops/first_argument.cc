#include "ops/first_argument.h"

#include <algorithm>
#include <array>

namespace msprobe {
namespace {

constexpr std::array<std::string_view, 11> kReplaced{"copy_",    "zero_",   "fill_",      "normal_",
                                                     "uniform_", "random_", "bernoulli_", "exponential_",
                                                     "cauchy_",  "set_",    "log_normal_"};
constexpr std::array<std::string_view, 5> kWithBeta{"addmm", "addmv", "addr", "addbmm", "baddbmm"};

template <size_t n>
bool IsOneOf(const std::array<std::string_view, n>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

FirstArgument FirstArgumentOf(std::string_view api) {
  if (IsOneOf(kReplaced, api)) return FirstArgument::kReplaced;
  if (api.ends_with('_')) api.remove_suffix(1);
  return IsOneOf(kWithBeta, api) ? FirstArgument::kReadUnlessNoBeta : FirstArgument::kRead;
}

}  // namespace msprobe
