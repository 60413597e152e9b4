// Commands of mindstudio-probe that are not commands here.
#pragma once

#include <optional>
#include <string_view>

namespace msprobe {

/// What does the job of that command today, as the end of a message; nothing if it was never a command.
std::optional<std::string_view> InsteadOfEarlier(std::string_view name);

/// The command line of which `name` is a part: "resume" is one of certify.
std::optional<std::string_view> CommandOfPart(std::string_view name);

}  // namespace msprobe
