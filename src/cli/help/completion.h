// What a shell completes, and the page of man(1), made of the declaration of commands and options.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace msprobe {

/// A script that bash sources; zsh, too, behind its bashcompinit.
std::string BashCompletion(const CLI::App& app);
std::string ZshCompletion(const CLI::App& app);
/// msprobe(1) in the language of man.
std::string ManualPage(const CLI::App& app);

}  // namespace msprobe
