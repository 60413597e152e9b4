// Whether a workbook holds all that was written to it: libxlsxwriter does not look at the errors of its temporary
// files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace msprobe {

/// Uncompressed bytes of xl/worksheets/sheet1.xml, sheet2.xml, ... as the directory of the zip file tells them.
StatusOr<std::vector<uint64_t>> SheetSizes(const std::string& path);

}  // namespace msprobe
