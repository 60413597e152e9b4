// The subcommands of `msprobe`. Each registers its options; the callback leaves its Status in the context.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "cli/context/command_context.h"

namespace CLI {
class App;
}

namespace msprobe {

void RegisterCompare(CLI::App& app, CommandContext* context);
void RegisterGraphVisualize(CLI::App& app, CommandContext* context);
void RegisterMergeResult(CLI::App& app, CommandContext* context);
void RegisterData2Db(CLI::App& app, CommandContext* context);
void RegisterServe(CLI::App& app, CommandContext* context);
void RegisterExport(CLI::App& app, CommandContext* context);
void RegisterRun(CLI::App& app, CommandContext* context);
void RegisterEstimate(CLI::App& app, CommandContext* context);
void RegisterCertify(CLI::App& app, CommandContext* context);
void RegisterRecover(CLI::App& app, CommandContext* context);
void RegisterVerifyDump(CLI::App& app, CommandContext* context);
void RegisterOverflowCheck(CLI::App& app, CommandContext* context);
void RegisterParse(CLI::App& app, CommandContext* context);
void RegisterCodeMapping(CLI::App& app, CommandContext* context);
void RegisterCkpt(CLI::App& app, CommandContext* context);
void RegisterConfigCheck(CLI::App& app, CommandContext* context);
void RegisterCurves(CLI::App& app, CommandContext* context);
void RegisterOptimizerReplay(CLI::App& app, CommandContext* context);
void RegisterDoctor(CLI::App& app, CommandContext* context);
void RegisterMonitor(CLI::App& app, CommandContext* context);

/// The whole command: parses, runs, prints a one-line error to stderr, returns the exit code.
int RunCommand(std::vector<std::string> args);

/// What `--template list` prints, or with a name the text of that layer mapping.
Status PrintLayerTemplates(const std::string& name, bool json);

/// Two-letter short options of the old command line ("-tp X", "-gp=X", "-fm") as the long ones that CLI11 knows. Values
/// that follow stay as they are; "--" ends the rewriting.
std::vector<std::string> ExpandShortOptions(std::vector<std::string> args);

}  // namespace msprobe
