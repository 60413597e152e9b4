// The program `msprobe`: its subcommands and what they share.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace msprobe {

/// The whole command: parses, runs, prints a one-line error to stderr, returns the exit code.
int RunCommand(std::vector<std::string> args);

/// What `--template list` prints, or with a name the text of that layer mapping.
Status PrintLayerTemplates(const std::string& name, bool json);

}  // namespace msprobe
