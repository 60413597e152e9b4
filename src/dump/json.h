// JSON values of one op. RapidJSON with a pool allocator: a document is reused, so parsing an op allocates nothing.
#pragma once

#ifndef RAPIDJSON_HAS_STDSTRING
#define RAPIDJSON_HAS_STDSTRING 1
#endif
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wclass-memaccess"
#include <rapidjson/document.h>
#pragma GCC diagnostic pop

#include <string_view>

#include "base/status.h"

namespace msprobe {

using JsonValue = rapidjson::Value;
using JsonDoc = rapidjson::Document;

/// Bare NaN and Infinity are accepted, because healthy dumps hold them; recursion is bounded (the parser is iterative and
/// deeper nesting than kMaxJsonDepth is refused before anything is built).
inline constexpr int kMaxJsonDepth = 400;
Status ParseJson(std::string_view text, std::string_view what, JsonDoc* doc);

inline std::string_view Text(const JsonValue& v) { return {v.GetString(), v.GetStringLength()}; }
/// Member of an object, null when absent or when `v` is no object.
const JsonValue* Find(const JsonValue& v, std::string_view key);

}  // namespace msprobe
