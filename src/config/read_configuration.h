// The files that say how a run is configured, read by what they are.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "config/settings.h"

namespace msprobe {

/// Launch scripts (.sh), yaml, json, toml, logs (.log, .txt, .out) and directories of models with config.json; also the
/// files of settings that a command of a script names (--yaml-cfg, --config, ...) where they are there. Later files
/// override earlier ones, and arguments of a command the file that it names.
StatusOr<Configuration> ReadConfiguration(const std::vector<std::string>& paths);

/// One file more.
Status AddFile(const std::string& path, Configuration* out);

}  // namespace msprobe
