// dump.json: nothing crashes, spans stay inside the file, and what a plain parser reads the index finds too.
#include <set>
#include <string>
#include <vector>

#include "dump/flatten.h"
#include "dump/reader.h"
#include "fuzz_file.h"
#include "json/parser.h"

namespace msprobe::fuzz {
namespace {

void ReadOps(const DumpFile& dump) {
  JsonDoc doc;
  std::vector<Item> items;
  for (size_t i = 0; i < dump.ops().size(); ++i) {
    const OpSpan& op = dump.ops()[i];
    Check(op.length > 0 && op.offset + op.length <= dump.file().text().size(), "an op lies inside the file");
    Check(dump.FindOp(op.name) == i, "an op is found by its name");
    const Status status = dump.ParseOp(i, &doc);
    if (!status.ok()) {
      CheckRefusal(status);
      continue;
    }
    items.clear();
    FlattenOp(op.name, doc, &items);
    for (const Item& item : items) Check(item.leaf->IsNull() || item.leaf->IsObject(), "a leaf is an object or null");
  }
  (void)dump.FindChecksums();
}

void ComparePlain(std::string_view text, const StatusOr<DumpFile>& dump) {
  JsonDoc whole;
  if (!ParseJson(text, "input", &whole).ok() || !whole.IsObject()) return;
  const JsonValue* data = whole.Find("data");
  if (!data || !data->IsObject()) return;
  Check(dump.ok(), "a dump that a plain parser reads is accepted");
  std::set<std::string_view> names;
  for (const auto& member : data->Members()) names.insert(member.name);
  Check(dump->ops().size() == names.size(), "the index holds each op once");
  Check(dump->truncated().empty(), "a whole file is not truncated");
  for (const std::string_view name : names) Check(dump->FindOp(name).has_value(), "each op is in the index");
}

}  // namespace
}  // namespace msprobe::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace msprobe;
  const fuzz::MemoryFile file(data, size);
  const auto dump = DumpFile::Open(file.path());
  if (dump.ok()) {
    fuzz::ReadOps(*dump);
  } else {
    fuzz::CheckRefusal(dump.status());
  }
  fuzz::ComparePlain({reinterpret_cast<const char*>(data), size}, dump);
  return 0;
}
