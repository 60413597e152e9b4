#include "lab/csv_lines.h"

#include "sheet/table.h"

namespace msprobe {

void AppendCsvLine(std::span<const std::string> cells, std::string* out) {
  for (size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) *out += ',';
    AppendCsvField(out, cells[i]);
  }
  *out += "\r\n";
}

}  // namespace msprobe
