// Options that the commands of the operator laboratory have in common.
#pragma once

#include "lab/standards/standard.h"

namespace CLI {
class App;
}

namespace msprobe {

/// --standards 26.2|8.1
void AddStandardsOption(CLI::App* command, StandardRelease* release);

}  // namespace msprobe
