// Pages of tables: what they hold is read within their bounds, and in order.
#include <array>
#include <limits>

#include "fuzz_file.h"
#include "view/file/table_pages.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace msprobe;
  const fuzz::MemoryFile input(data, size);
  const auto pages = view::TablePages::Open(input.path());
  if (!pages) return 0;
  constexpr std::array<int, 3> kColumns{1, 2, 4};
  for (uint32_t root = 0; root < 5; ++root) {
    int64_t next = 0, last = std::numeric_limits<int64_t>::min();
    const int64_t first = last;
    size_t read = 0;
    const auto whole = pages->Read(
        {root, kColumns, first, std::numeric_limits<int64_t>::max()},
        [&](const view::SqlRow& row) {
          fuzz::Check(row.id > last || read == 0, "rows are in order");
          last = row.id;
          for (const view::SqlValue& value : row.values) read += 1 + std::string(value.text).size();
          return OkStatus();
        },
        &next);
    fuzz::Check(whole.ok(), "nobody has refused a row");
  }
  return 0;
}
