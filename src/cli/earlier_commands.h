// Words that are no commands here: those of mindstudio-probe, and what people try.
#pragma once

#include <optional>
#include <string_view>

namespace msprobe {

/// What does the job of that command today, as the end of a message; nothing if it was never a command.
std::optional<std::string_view> InsteadOfEarlier(std::string_view name);

/// The command line that people mean by a word that is no command: "resume" is one of certify, "diff" is compare.
std::optional<std::string_view> CommandOfWord(std::string_view name);

}  // namespace msprobe
