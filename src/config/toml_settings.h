// Settings of a TOML file, as torchtitan has them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "config/settings.h"

namespace msprobe {

/// Tables and dotted keys as paths with dots; dates stay texts. kBadInput with path and line for what is no TOML.
StatusOr<std::vector<Setting>> ReadTomlSettings(std::string_view text, const std::string& path);

}  // namespace msprobe
