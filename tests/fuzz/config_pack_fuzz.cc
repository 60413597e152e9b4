// Zip files of config_check: what is read of them, and that two of them compare.
#include "checks/pack.h"
#include "checks/pack_compare.h"
#include "fuzz_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace msprobe;
  const fuzz::MemoryFile input(data, size);
  const auto file = PackFile::Open(input.path());
  if (!file.ok()) {
    fuzz::CheckRefusal(file.status());
    return 0;
  }
  const auto pack = file->Read();
  if (!pack.ok()) {
    fuzz::CheckRefusal(pack.status());
    return 0;
  }
  for (const PackPart& part : ComparePacks(*pack, *pack)) {
    for (const auto& row : part.sheet.rows) {
      fuzz::Check(row.size() <= part.sheet.columns.size(), "a row is no longer than the titles");
    }
  }
  return 0;
}
