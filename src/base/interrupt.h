// Ctrl-C: long work asks now and then and unwinds as an ordinary Status, so temporary files are removed on the way out.
#pragma once

#include "base/status.h"

namespace msprobe {

/// Takes over SIGINT and SIGTERM for the process (the command does, the Python module does not).
void InstallInterruptHandler();
bool InterruptRequested();
/// For tests: as if Ctrl-C had been pressed, or not.
void SetInterruptRequested(bool on);

}  // namespace msprobe
