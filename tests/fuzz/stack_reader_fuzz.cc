// stack.json in both forms: nothing crashes, and what a plain parser reads the reader finds too.
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "dump/reader.h"
#include "fuzz_file.h"
#include "json/parser.h"

namespace msprobe::fuzz {
namespace {

using Frames = std::vector<std::string_view>;

bool Strings(const JsonValue& list, Frames* out) {
  if (!list.IsArray()) return false;
  out->clear();
  for (const JsonValue& text : list.Items()) {
    if (!text.IsString()) return false;
    out->push_back(text.Text());
  }
  return true;
}

/// The frames of each op, as far as the whole text is a stack.json to a plain parser.
bool PlainStacks(std::string_view text, JsonDoc* doc, std::map<std::string_view, Frames>* out) {
  if (!ParseJson(text, "input", doc).ok() || !doc->IsObject()) return false;
  for (const auto& member : doc->Members()) {
    const JsonValue& value = member.value;
    Frames ops{member.name}, frames;
    const bool grouped = value.IsArray() && value.size() == 2 && value[0].IsArray() && value[1].IsArray();
    if (grouped ? !Strings(value[0], &ops) || !Strings(value[1], &frames) : !Strings(value, &frames)) return false;
    for (const std::string_view op : ops) (*out)[op] = frames;
  }
  return true;
}

}  // namespace
}  // namespace msprobe::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace msprobe;
  const fuzz::MemoryFile file(data, size);
  const auto stacks = StackFile::Open(file.path());
  JsonDoc doc;
  std::map<std::string_view, fuzz::Frames> plain;
  const bool reads = fuzz::PlainStacks({reinterpret_cast<const char*>(data), size}, &doc, &plain);
  fuzz::Check(stacks.ok() || !reads, "what a plain parser reads is accepted");
  if (!stacks.ok()) {
    fuzz::CheckRefusal(stacks.status());
    return 0;
  }
  size_t bytes = 0;
  for (uint32_t id = 0; id < stacks->size(); ++id) {
    for (const std::string& frame : stacks->Frames(id)) bytes += frame.size();
  }
  fuzz::Check(bytes <= size * 3, "frames are no longer than their text");
  for (const char* op : {"a", "Functional.relu.0.forward"}) {
    if (const auto id = stacks->StackOf(op)) fuzz::Check(*id < stacks->size(), "an id names a stack");
  }
  if (!reads) return 0;
  for (const auto& [op, frames] : plain) {
    const auto id = stacks->StackOf(op);
    fuzz::Check(id.has_value(), "each op has its stack");
    const auto& found = stacks->Frames(*id);
    fuzz::Check(fuzz::Frames(found.begin(), found.end()) == frames, "and it is the last that the file gives it");
  }
  return 0;
}
