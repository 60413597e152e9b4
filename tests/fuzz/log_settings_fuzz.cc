// What trainings print of their configuration.
#include <string_view>

#include "config/log_settings.h"
#include "fuzz_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace msprobe;
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  const auto read = ReadLogSettings(text, "in.log");
  if (!read.ok()) {
    fuzz::CheckRefusal(read.status());
    return 0;
  }
  fuzz::Check(!read->empty(), "a configuration that is known");
  for (const ConfigSource& source : *read) {
    for (const Setting& setting : source.settings) fuzz::Check(!setting.key.empty(), "settings have names");
  }
  return 0;
}
