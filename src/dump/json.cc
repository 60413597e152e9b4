#include "dump/json.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#include <rapidjson/error/en.h>
#include <rapidjson/memorystream.h>
#pragma GCC diagnostic pop

#include "dump/scan.h"

namespace msprobe {
namespace {

// Holds the values of nearly every op; what is larger goes to chunks that are freed at the next parse.
constexpr size_t kPoolBytes = size_t{64} << 10;

// The nesting is bounded before the parser runs, so its recursion is too.
constexpr unsigned kFlags =
    rapidjson::kParseFullPrecisionFlag | rapidjson::kParseNanAndInfFlag | rapidjson::kParseTrailingCommasFlag;

}  // namespace

JsonPool::JsonPool()
    : buffer(new char[kPoolBytes]),
      allocator(new rapidjson::MemoryPoolAllocator<>(buffer.get(), kPoolBytes, kPoolBytes)) {}
JsonPool::JsonPool(JsonPool&&) noexcept = default;
JsonPool& JsonPool::operator=(JsonPool&&) noexcept = default;
JsonPool::~JsonPool() = default;

Status ParseJson(std::string_view text, std::string_view what, JsonDoc* doc, uint64_t base) {
  doc->SetNull();
  doc->GetAllocator().Clear();
  if (text.substr(0, 3) == "\xEF\xBB\xBF") {
    text.remove_prefix(3);
    base += 3;
  }
  if (NestingDepth(text) > static_cast<uint64_t>(kMaxJsonDepth)) {
    return BadInput(std::string(what) + " is nested deeper than " + std::to_string(kMaxJsonDepth) +
                    " levels: no dump is, check where the file comes from");
  }
  rapidjson::MemoryStream stream(text.data(), text.size());
  doc->ParseStream<kFlags, rapidjson::UTF8<>>(stream);
  if (!doc->HasParseError()) return OkStatus();
  const uint64_t at = base + doc->GetErrorOffset();
  std::string why = rapidjson::GetParseError_En(doc->GetParseError());
  if (!why.empty() && why.back() == '.') why.pop_back();
  doc->SetNull();
  return BadInput(std::string(what) + " is not valid JSON at byte " + std::to_string(at) + " (" + why +
                  "): restore the file or dump again");
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
