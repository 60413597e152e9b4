// What a launch script would start, read without running anything.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "config/settings.h"
#include "config/shell_lexer.h"
#include "config/shell_patterns.h"

namespace msprobe {

/// A here-document that a script writes into a file.
struct WrittenFile {
  std::string name, text;
};

struct ShellReading {
  std::vector<std::vector<ShellField>> commands;  // that start a program, in order
  std::vector<Setting> environment;               // exported variables, and those set for one command
  std::vector<WrittenFile> written;               // cat > NAME <<END
  SlurmJob job;                                   // #SBATCH
  std::vector<Message> notes;                     // conditions and values that only a run knows
};

/// Follows assignments, arrays, ${X:-default}, $((arithmetic)), `source`, functions and conditions that variables of
/// the script decide; of others the first branch counts, with a note. What is set outside of the script stays as $NAME.
StatusOr<ShellReading> ReadShell(std::string_view text, const std::string& path);

}  // namespace msprobe
