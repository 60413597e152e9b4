// The arguments of a command that starts a training, as settings.
#pragma once

#include <string>
#include <vector>

#include "config/settings.h"
#include "config/shell_lexer.h"

namespace msprobe {

struct LaunchCommand {
  std::vector<Setting> launcher;   // options of torchrun, msrun, deepspeed, ... before the program
  std::vector<Setting> arguments;  // of the program: --name value and name=value, "_" for "-"
  std::vector<ShellField> files;   // words among those that are names of yaml, json or toml files
  std::string program;             // train.py, the module behind -m, or a command of a stack: "swift sft"
  ConfigDialect dialect = ConfigDialect::kUnknown;  // what the program takes
  bool by_slurm = false;                            // srun starts it, once for each task
};

/// Whether the word is what `bash -c` is to run.
bool IsShellText(const std::vector<ShellField>& words, size_t at);

/// Whether this is the name of a file of settings.
bool IsSettingsFile(std::string_view name);

/// A command of a name that is not known, by its options; false if it has not several.
bool ReadConsoleCommand(const std::vector<ShellField>& words, LaunchCommand* out);

/// False if the command starts no Python program and is none of a stack.
bool ReadLaunchCommand(const std::vector<ShellField>& words, LaunchCommand* out);

}  // namespace msprobe
