// Launch scripts, and the arguments of the commands in them.
#include <string_view>

#include "base/text.h"
#include "config/launch_command.h"
#include "config/shell_script.h"
#include "fuzz_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace msprobe;
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  if (Contains(text, "source") || Contains(text, ".")) return 0;  // would read files of the machine
  const auto read = ReadShell(text, "/absent/in.sh");
  if (!read.ok()) {
    fuzz::CheckRefusal(read.status());
    return 0;
  }
  for (const auto& words : read->commands) {
    LaunchCommand command;
    if (ReadLaunchCommand(words, &command)) fuzz::Check(!command.program.empty(), "a program is started");
  }
  return 0;
}
