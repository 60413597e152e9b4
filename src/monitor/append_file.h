// Files that only grow: what was appended is there as a whole, or not at all.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace msprobe {

/// Opens or makes `path` for appending, never through a symbolic link. The caller closes the descriptor.
StatusOr<int> OpenAppend(const std::string& path);

/// Appends all of `bytes`. Where the kernel refuses some (a full disk), the file is cut back to what it was.
Status AppendWhole(int fd, const std::string& path, std::string_view bytes);

}  // namespace msprobe
