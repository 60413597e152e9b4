// --fail-on, which means the same in each command.
#pragma once

#include "cli/context/command_context.h"

namespace CLI {
class App;
}

namespace msprobe {

void AddFailOn(CLI::App* command, CommandContext* context);

}  // namespace msprobe
