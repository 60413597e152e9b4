// Ctrl-C: long work asks now and then and unwinds as an ordinary Status, so temporary files are removed on the way out.
#pragma once

#include "base/status.h"

namespace msprobe {

/// Takes over SIGINT, SIGTERM and SIGHUP for the process (the command does, the Python module does not). The second one
/// ends the process at once, without its temporary files. So does SIGBUS, with one line of text: a file that was mapped
/// has become shorter. SIGPIPE and SIGXFSZ are ignored.
void InstallInterruptHandler();
bool InterruptRequested();
/// For tests: as if Ctrl-C had been pressed, or not.
void SetInterruptRequested(bool on);

}  // namespace msprobe
