// A script of plain torch that makes one call of a dump on a device and in float64, and says how far apart they are.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace msprobe {

struct OpScriptSettings {
  std::string dump;       // a dump.json
  std::string extracted;  // a file for the call's own entries; "" without one
  std::string call;       // "Functional.softmax.0"
  bool backward = false;
  bool real_data = false;  // recorded tensors; else values drawn within the recorded range
  int64_t seed = 1234;
  int64_t times = 1;  // how often the call is made
  std::string output;

  /// Of a config_op.json as mindstudio-probe 8.x has it. kBadInput, with key and value, for what it does not allow.
  static StatusOr<OpScriptSettings> Read(const std::string& path);
};

struct OpScript {
  std::string path;     // of the script
  std::string printed;  // what it printed when it was run in a process of its own
};

/// Writes the script and runs it; a script that does not run is not left behind.
StatusOr<OpScript> WriteOpScript(const OpScriptSettings& settings);

}  // namespace msprobe
