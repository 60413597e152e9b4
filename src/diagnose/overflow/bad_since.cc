#include "diagnose/overflow/bad_since.h"

#include <fmt/format.h>

namespace msprobe {

std::string BadSinceText(const BadSince& since, Language language) {
  const bool chinese = language == Language::kChinese;
  const auto say = [&](fmt::string_view en, fmt::string_view zh, const auto&... values) {
    return fmt::vformat(chinese ? zh : en, fmt::make_format_args(values...));
  };
  const std::string step = !since.step.empty() ? since.step : chinese ? "该 step" : "the step";
  switch (since.kind) {
    case BadSince::Kind::kUnknown: return "";
    case BadSince::Kind::kBeforeStep: return say("it was already bad when {} began", "在 {} 开始之前就已异常", step);
    case BadSince::Kind::kAfterStep: return say("it became bad after {}", "在 {} 之后变为异常", step);
    case BadSince::Kind::kWasClean:
      return say("in {} it was clean ({}): the optimizer's step between made it bad",
                 "在 {} 中正常（{}）：由其间的优化器更新造成", step, since.value);
    case BadSince::Kind::kWasBad: return say("in {} it was bad, too ({})", "在 {} 中就已异常（{}）", step, since.value);
  }
  return "";
}

}  // namespace msprobe
