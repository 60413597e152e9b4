// recover: whatever is left of a file, what is made of it is whole, holds each complete entry, and is whole to recover.
#include <string>

#include "dump/reader.h"
#include "dump/repair/salvage.h"
#include "fuzz_file.h"
#include "json/parser.h"
#include "json/scan.h"

namespace msprobe::fuzz {
namespace {

void SalvageTwice(const uint8_t* data, size_t size, SalvageKind kind) {
  const MemoryFile memory(data, size);
  const auto file = MappedFile::Open(memory.path());
  if (!file.ok()) return CheckRefusal(file.status());
  Salvage found;
  std::string out;
  const Status status = SalvageFile(*file, kind, &found, [&](std::string_view piece) {
    out.append(piece);
    return OkStatus();
  });
  if (!status.ok()) return CheckRefusal(status);
  Check(out.size() <= 4 * size + 64, "the result is about as large as the input");
  const MemoryFile again_memory(reinterpret_cast<const uint8_t*>(out.data()), out.size());
  const auto again = MappedFile::Open(again_memory.path());
  Check(again.ok(), "the result can be opened");
  Salvage second;
  Check(SalvageFile(*again, kind, &second).ok(), "the result can be read");
  Check(second.whole, "the result is whole");
  Check(second.entries == found.entries, "the result holds the same entries");
  if (NestingDepth(out) > kMaxJsonDepth) return;  // an entry may be as deep as that by itself
  JsonDoc doc;
  Check(ParseJson(out, "result", &doc).ok(), "the result is JSON");
}

}  // namespace
}  // namespace msprobe::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace msprobe;
  fuzz::SalvageTwice(data, size, SalvageKind::kDump);
  fuzz::SalvageTwice(data, size, SalvageKind::kFlat);
  return 0;
}
