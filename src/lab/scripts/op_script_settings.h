// What op_generate is asked for: a config_op.json as mindstudio-probe 8.x has it.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "dump/reader.h"

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

/// The op of the call in this direction, ".forward" or ".backward". kBadInput when the dump has none.
StatusOr<size_t> OpOf(const OpScriptSettings& settings, const DumpFile& dump, const char* direction);

}  // namespace msprobe
