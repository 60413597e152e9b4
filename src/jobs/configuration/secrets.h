// What must not leave a machine in a file that is passed on.
#pragma once

#include <string>
#include <string_view>

namespace msprobe {

/// What stands for a value that was left out.
inline constexpr std::string_view kHiddenValue = "<hidden by msprobe>";

/// By its name (password, api_key, ...), or by the shape of its value (a key of a known service, a password in an
/// address, a long random text under a name such as hf_token).
bool IsSecret(std::string_view name, std::string_view value);

/// Environment variables that say something of a training: of frameworks, libraries, devices, launchers.
bool IsTrainingVariable(std::string_view name);

}  // namespace msprobe
