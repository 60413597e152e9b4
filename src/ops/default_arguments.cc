#include "ops/default_arguments.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>

namespace msprobe {
namespace {

constexpr DefaultArgument kDefaults[] = {
#define MSP_DEFAULT_ARGUMENT(function, place, name, value) {function, name, value, place},
#include "ops/default_arguments.def"
#undef MSP_DEFAULT_ARGUMENT
};

std::optional<double> NumberOf(std::string_view text) {
  double out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(out) : std::nullopt;
}

}  // namespace

const DefaultArgument* FindDefaultArgument(std::string_view function, std::string_view item) {
  constexpr std::string_view kInput = ".input.";
  if (!item.starts_with(kInput)) return nullptr;
  const std::string_view key = item.substr(kInput.size());
  int place = -1;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), place);
  const bool numbered = error == std::errc() && end == key.data() + key.size();
  const DefaultArgument* at = std::ranges::lower_bound(kDefaults, function, {}, &DefaultArgument::function);
  for (; at != std::end(kDefaults) && at->function == function; ++at) {
    if (numbered ? at->place >= 0 && at->place == place : at->name == key) return at;
  }
  return nullptr;
}

bool IsDefaultValue(const DefaultArgument& argument, std::string_view value) {
  const std::optional<double> a = NumberOf(argument.value), b = NumberOf(value);
  return a && b ? *a == *b : argument.value == value;
}

}  // namespace msprobe
