// The arguments of a command that starts a training, as settings.
#pragma once

#include <string>
#include <vector>

#include "config/settings.h"
#include "config/shell_field.h"

namespace msprobe {

struct LaunchCommand {
  std::vector<Setting> launcher;   // options of torchrun, msrun, deepspeed, ... before the program
  std::vector<Setting> arguments;  // of the program: --name value and name=value, "_" for "-"
  std::string program;             // train.py, or the module behind -m
};

/// False if the command starts no Python program.
bool ReadLaunchCommand(const std::vector<ShellField>& words, LaunchCommand* out);

}  // namespace msprobe
