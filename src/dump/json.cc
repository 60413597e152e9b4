#include "dump/json.h"

#include "dump/json_parser.h"
#include "dump/members.h"

namespace msprobe {
namespace {

// Holds the values of nearly every op; what is larger goes to chunks that are freed at the next parse.
constexpr size_t kPoolBytes = size_t{64} << 10;

}  // namespace

JsonPool::JsonPool()
    : buffer(new char[kPoolBytes]),
      allocator(new rapidjson::MemoryPoolAllocator<>(buffer.get(), kPoolBytes, kPoolBytes)) {}
JsonPool::JsonPool(JsonPool&&) noexcept = default;
JsonPool& JsonPool::operator=(JsonPool&& o) noexcept {
  // The allocator goes first: leaving, it still writes into its buffer.
  allocator = std::move(o.allocator);
  buffer = std::move(o.buffer);
  return *this;
}
JsonPool::~JsonPool() = default;

Status ParseJson(std::string_view text, std::string_view what, JsonDoc* doc, uint64_t base) {
  doc->SetNull();
  doc->GetAllocator().Clear();
  if (text.substr(0, 3) == "\xEF\xBB\xBF") {
    text.remove_prefix(3);
    base += 3;
  }
  if (text.size() > kMaxJsonBytes) {
    return BadInput(std::string(what) + " at byte " + std::to_string(base) + " is " + std::to_string(text.size()) +
                    " bytes long: nothing in a dump is longer than " + std::to_string(kMaxJsonBytes) +
                    ", check where the file comes from");
  }
  JsonParser parser(text);
  doc->Populate(parser);
  if (parser.expected().empty()) return OkStatus();
  doc->SetNull();
  const size_t at = parser.position();
  return BadInput(std::string(what) + " is not valid JSON at byte " + std::to_string(base + at) + ": expected " +
                  std::string(parser.expected()) + " but found " +
                  (at < text.size() ? ShownByte(text[at]) : "the end") + ", restore the file or dump again");
}

const JsonValue* Find(const JsonValue& v, std::string_view key) {
  if (!v.IsObject()) return nullptr;
  for (auto m = v.MemberEnd(); m != v.MemberBegin();) {
    --m;
    if (Text(m->name) == key) return &m->value;
  }
  return nullptr;
}

}  // namespace msprobe
