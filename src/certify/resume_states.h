// The states that python/msprobe/_attach/resume.py writes, read by kind and name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "json/value.h"

namespace msprobe {

inline constexpr std::string_view kMissingState = "missing";

inline const JsonValue* MemberOf(const JsonValue* v, std::string_view key) {
  return v != nullptr && v->IsObject() ? v->Find(key) : nullptr;
}

inline std::string TextAt(const JsonValue* v, std::string_view key, std::string_view otherwise = kMissingState) {
  const JsonValue* found = MemberOf(v, key);
  return found != nullptr && found->IsString() ? std::string(found->Text()) : std::string(otherwise);
}

inline int64_t IntAt(const JsonValue* v, std::string_view key) {
  const JsonValue* found = MemberOf(v, key);
  return found != nullptr && found->IsInt() ? found->Int() : 0;
}

/// The entry of a list "before" that belongs to a step.
inline const JsonValue* BeforeStep(const JsonValue& run, int64_t step) {
  const JsonValue* list = run.Find("before");
  if (list == nullptr || !list->IsArray()) return nullptr;
  for (const JsonValue& entry : list->Items()) {
    if (entry.IsObject() && IntAt(&entry, "step") == step) return &entry;
  }
  return nullptr;
}

}  // namespace msprobe
