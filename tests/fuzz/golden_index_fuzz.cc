// The checksums of a dump: nothing crashes, and a dump does not differ from itself.
#include <algorithm>
#include <vector>

#include "capture/golden_index.h"
#include "dump/reader.h"
#include "fuzz_file.h"

namespace msprobe::fuzz {
namespace {

void CompareWithItself(const GoldenIndex& index, const DumpFile& dump) {
  JsonDoc doc;
  OpChecksums sums;
  for (size_t i = 0; i < dump.ops().size(); ++i) {
    if (!dump.ParseOp(i, &doc).ok()) continue;
    const std::string_view name = dump.ops()[i].name;
    SumsOf(name, doc, &sums);
    Check(index.Contains(name), "an op that can be parsed is in the index");
    // An object may name a member twice: then there are two sums at one place.
    std::vector<uint32_t> places;
    for (const TensorSum& s : sums.inputs) places.push_back(s.place);
    for (const TensorSum& s : sums.outputs) places.push_back(s.place);
    std::sort(places.begin(), places.end());
    const bool once = std::adjacent_find(places.begin(), places.end()) == places.end();
    Check(!once || !index.OnlyOutputsDiffer(name, sums), "a dump does not differ from itself");
  }
}

}  // namespace
}  // namespace msprobe::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace msprobe;
  const fuzz::MemoryFile file(data, size);
  const auto index = GoldenIndex::Read(file.path());
  const auto dump = DumpFile::Open(file.path());
  if (!index.ok()) {
    fuzz::CheckRefusal(index.status());
  } else {
    fuzz::Check(dump.ok(), "what the index reads is a dump");
    fuzz::CompareWithItself(*index, *dump);
  }
  return 0;
}
