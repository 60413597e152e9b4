// Files of settings: yaml, json and toml.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "config/settings.h"

namespace msprobe {

/// By its ending; the stack is guessed by its keys. JSON may have comments, and commas before closing brackets.
StatusOr<ConfigSource> ReadSettingsFile(const std::string& path);
StatusOr<ConfigSource> ReadSettingsText(std::string_view text, const std::string& path);

}  // namespace msprobe
