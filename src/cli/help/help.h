// What `msprobe --help` and `msprobe COMMAND --help` print, beside what CLI11 makes of the options.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace msprobe {

/// "help", "help ckpt compare" as "--help", "ckpt compare --help", and --help-all as --help; `all` says that it was.
std::vector<std::string> ReadHelpWords(std::vector<std::string> args, bool* all);

/// Puts commands and options into their groups, appends examples, and gives every text the language of the locale.
/// `all`: with the options that few people need.
void FinishHelp(CLI::App* app, bool all);

/// The first example of a command or of a part of one, such as "monitor judge"; "" where it has none.
std::string_view FirstExample(std::string_view command);

/// "--html" for "-html", where the command has that option; "" else.
std::string LongOption(const CLI::App& command, std::string_view given);

/// "--golden_path (-gp)" for "--golden_pth": the option of the command that was likely meant, "" where none is near.
std::string LikelyOption(const CLI::App& command, std::string_view given);

}  // namespace msprobe
