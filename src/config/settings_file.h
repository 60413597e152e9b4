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

/// The settings of a file behind those of the files that it begins with (`_base_: ../base.yaml`, `defaults` of hydra
/// with their groups). `overrides`: of a command, which may choose another file of a group (`model=large`): those that
/// do are taken from there. Files that are not here are named in `out`; null: no command.
StatusOr<ConfigSource> ReadWithBases(const std::string& path, std::vector<Setting>* overrides, Configuration* out);

/// Whether both are one file.
bool SameFile(const std::string& a, const std::string& b);

}  // namespace msprobe
