// The commands of the operator laboratory.
#pragma once

#include "cli/context/command_context.h"

namespace CLI {
class App;
}

namespace msprobe {

void RegisterAccCheck(CLI::App& app, CommandContext* context);
void RegisterPrecisionCompare(CLI::App& app, CommandContext* context);
void RegisterTolerance(CLI::App& app, CommandContext* context);
void RegisterOpGenerate(CLI::App& app, CommandContext* context);
void RegisterOverflowReplay(CLI::App& app, CommandContext* context);
void RegisterCheckKernels(CLI::App& app, CommandContext* context);
void RegisterLab(CLI::App& app, CommandContext* context);

}  // namespace msprobe
