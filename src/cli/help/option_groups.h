// Options of a command in groups, as its help shows them.
#pragma once

#include <string_view>

namespace CLI {
class App;
}

namespace msprobe {

/// Puts the options that option_groups.def lists for the command into their groups. Those of the further groups are
/// shown by --help-all only, where `further` is true. False where none is listed.
bool GroupOptions(CLI::App* command, bool further);

}  // namespace msprobe
