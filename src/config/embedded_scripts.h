// Shell scripts inside of yaml: job descriptions of SkyPilot, Kubernetes, docker compose, GitHub and their like.
#pragma once

#include <string>

#include "config/settings.h"

namespace msprobe {

/// What such a file would run, as one script on the lines of the file, with its environment exported first; "" if it
/// has nothing to run.
std::string EmbeddedScript(const ConfigSource& source);

}  // namespace msprobe
