// construct.json.
#include <set>
#include <string>

#include "dump/reader.h"
#include "fuzz_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace msprobe;
  const fuzz::MemoryFile file(data, size);
  const auto construct = ConstructFile::Open(file.path());
  if (!construct.ok()) {
    fuzz::CheckRefusal(construct.status());
    return 0;
  }
  std::set<std::string> names;
  for (const ConstructEntry& entry : construct->entries) {
    fuzz::Check(names.insert(entry.name).second, "a node stands in the hierarchy once");
  }
  return 0;
}
