#include "cli/context/fail_on.h"

#include <CLI/CLI.hpp>
#include <string>

namespace msprobe {

void AddFailOn(CLI::App* command, CommandContext* context) {
  command
      ->add_option_function<std::string>(
          "--fail-on", [context](const std::string& kind) { context->fail_on = ParseFailOn(kind); },
          "exit with 1 for what is as bad as this or worse, with 5 for what is not decided")
      ->check(CLI::IsMember(std::vector<std::string>(kFailOnNames.begin(), kFailOnNames.end())));
}

}  // namespace msprobe
