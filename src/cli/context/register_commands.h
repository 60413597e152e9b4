// RegisterCompare and so on, one for each command. Each adds its options; the callback leaves its Status in the
// context.
#pragma once

#include "cli/context/command_context.h"

namespace CLI {
class App;
}

namespace msprobe {

#define MSP_COMMAND(function, name, group, runs_program, earlier) \
  void Register##function(CLI::App& app, CommandContext* context);
#include "cli/context/commands.def"

}  // namespace msprobe
