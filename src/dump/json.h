// JSON values of one op: RapidJSON documents over a pool that is reused, so parsing an op allocates nothing.
#pragma once

#ifndef RAPIDJSON_HAS_STDSTRING
#define RAPIDJSON_HAS_STDSTRING 1
#endif
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wclass-memaccess"
#endif
#include <rapidjson/document.h>
#pragma GCC diagnostic pop

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"

namespace msprobe {

using JsonValue = rapidjson::Value;

/// The memory that a document starts in; it stays with the document from one parse to the next.
struct JsonPool {
  JsonPool();
  JsonPool(JsonPool&&) noexcept;
  JsonPool& operator=(JsonPool&&) noexcept;
  ~JsonPool();
  std::unique_ptr<char[]> buffer;
  std::unique_ptr<rapidjson::MemoryPoolAllocator<>> allocator;
};

/// A rapidjson::Document over a pool of its own. Parsing into it again drops the values of the parse before.
class JsonDoc : private JsonPool, public rapidjson::Document {
 public:
  JsonDoc() : rapidjson::Document(JsonPool::allocator.get()) {}
  JsonDoc(JsonDoc&&) = default;
  JsonDoc& operator=(JsonDoc&&) = default;
  using rapidjson::Document::operator[];
};

/// Bare NaN and Infinity are accepted, because healthy dumps hold them, and so are trailing commas; the parser does not
/// recurse and refuses deeper nesting than kMaxJsonDepth, and texts longer than kMaxJsonBytes (values need up to 16
/// times the memory of their text). Numbers are read exactly; beyond double they are 0 or infinite, as in Python. Bytes
/// of strings that are not UTF-8 become U+FFFD. `what` names the text in errors; `base` is where `text` starts in its
/// file, so that the byte in the error is the file's. A byte order mark is skipped.
inline constexpr int kMaxJsonDepth = 410;  // values nested 400 deep, in an op
inline constexpr uint64_t kMaxJsonBytes = uint64_t{128} << 20;
Status ParseJson(std::string_view text, std::string_view what, JsonDoc* doc, uint64_t base = 0);

inline std::string_view Text(const JsonValue& v) { return {v.GetString(), v.GetStringLength()}; }
/// Member of an object, null when absent or when `v` is no object. Of duplicates the last one counts.
const JsonValue* Find(const JsonValue& v, std::string_view key);

}  // namespace msprobe
