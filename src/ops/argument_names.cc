#include "ops/argument_names.h"

#include <algorithm>
#include <charconv>
#include <iterator>

namespace msprobe {
namespace {

struct FunctionArguments {
  std::string_view function, names;
};

constexpr FunctionArguments kFunctionArguments[] = {
#define MSP_ARGUMENT_NAMES(function, names) {function, names},
#include "ops/argument_names.def"
#undef MSP_ARGUMENT_NAMES
};

}  // namespace

std::string_view ArgumentName(std::string_view function, std::string_view item) {
  constexpr std::string_view kInput = ".input.";
  if (!item.starts_with(kInput)) return {};
  const std::string_view key = item.substr(kInput.size());
  int place = -1;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), place);
  if (error != std::errc() || end != key.data() + key.size()) return {};
  const FunctionArguments* row =
      std::ranges::lower_bound(kFunctionArguments, function, {}, &FunctionArguments::function);
  if (row == std::end(kFunctionArguments) || row->function != function) return {};
  std::string_view names = row->names;
  for (; place > 0; --place) {
    const size_t space = names.find(' ');
    if (space == std::string_view::npos) return {};
    names.remove_prefix(space + 1);
  }
  const std::string_view name = names.substr(0, names.find(' '));
  return name == "-" ? std::string_view() : name;
}

}  // namespace msprobe
