// The secret in the address that `msprobe serve` prints: other users of the machine can reach the port, but cannot
// guess it.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace msprobe::serve {

/// 128 bits of the kernel's randomness as 32 hex digits.
StatusOr<std::string> MakeToken();
/// The token that a file keeps, so that an address outlives the server: its first line, at least 16 letters and digits.
/// A file that is not there is made with a new one, for its owner alone. kBadInput for one that others can read.
StatusOr<std::string> TokenOfFile(const std::string& path);
/// Takes the same time wherever the texts differ.
bool SameToken(std::string_view a, std::string_view b);

}  // namespace msprobe::serve
