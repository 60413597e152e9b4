// A script of plain torch or MindSpore that makes one call of a dump on a device and in float64, and says how far apart
// they are.
#pragma once

#include <string>

#include "base/status.h"
#include "lab/scripts/op_script_settings.h"

namespace msprobe {

struct OpScript {
  std::string path;     // of the script
  std::string printed;  // what it printed when it was run in a process of its own
};

/// Writes the script and runs it; a script that does not run is not left behind.
StatusOr<OpScript> WriteOpScript(const OpScriptSettings& settings);

}  // namespace msprobe
