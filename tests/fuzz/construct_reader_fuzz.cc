// construct.json: both readers say the same.
#include <set>
#include <string>

#include "dump/reader.h"
#include "fuzz_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace msprobe;
  const fuzz::MemoryFile file(data, size);
  const auto construct = ConstructFile::Open(file.path());
  const auto index = ParentIndex::Open(file.path());
  if (!construct.ok()) {
    fuzz::CheckRefusal(construct.status());
    return 0;
  }
  std::set<std::string> names;
  for (const ConstructEntry& entry : construct->entries) {
    fuzz::Check(names.insert(entry.name).second, "a node stands in the hierarchy once");
  }
  fuzz::Check(index.ok(), "what one reader accepts the other does");
  fuzz::Check(index->size() == construct->entries.size(), "and finds as many nodes");
  for (size_t i = 0; i < index->size(); ++i) {
    const ConstructEntry& entry = construct->entries[i];
    fuzz::Check(index->NameAt(i) == entry.name, "in the same order");
    fuzz::Check(index->ParentOf(entry.name) == entry.parent, "with the same parents");
  }
  return 0;
}
