// Zip archives that appear whole or not at all.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace msprobe {

struct ZipEntry {
  std::string name, bytes;
};

/// Deflated members in this order, dated 1980 so that the same content gives the same file; replaces what is at `path`.
Status WriteZip(const std::string& path, const std::vector<ZipEntry>& entries);

}  // namespace msprobe
