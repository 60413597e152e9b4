#include "cli/help/option_groups.h"

#include <CLI/CLI.hpp>
#include <array>
#include <string>

#include "base/text.h"

namespace msprobe {
namespace {

struct OptionGroup {
  std::string_view command, group;
  bool always;  // shown by --help, too
  std::string_view options;
};
constexpr std::array kOptionGroups{
#define MSP_OPTION_GROUP(command, group, always, options) OptionGroup{command, group, always, options},
#include "cli/help/option_groups.def"
};

}  // namespace

bool GroupOptions(CLI::App* command, bool further) {
  bool any = false;
  for (const OptionGroup& row : kOptionGroups) {
    if (row.command != command->get_name()) continue;
    for (const std::string_view name : Split(row.options, ' ')) {
      CLI::Option* option = command->get_option_no_throw("--" + std::string(name));
      any = true;
      if (option) option->group(row.always || further ? std::string(row.group) : "");
    }
  }
  return any;
}

}  // namespace msprobe
