// Which files hold the same bytes: the ranks of a data parallel run often do, and need not be looked at twice.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "base/status.h"

namespace msprobe {

/// A number for each file: equal where the contents are, 0 for a file that is not there. Files of one size are read and
/// hashed (128 bits), in parallel; other names of one file are not read again.
StatusOr<std::vector<uint32_t>> ContentNumbers(const std::vector<std::string>& paths);

}  // namespace msprobe
