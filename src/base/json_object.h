// A JSON object written member by member.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"

namespace msprobe {

class JsonObject {
 public:
  void Key(std::string_view key) {
    text_ += text_.size() > 1 ? ", " : "";
    AppendJsonString(text_, key);
    text_ += ": ";
  }
  void String(std::string_view key, std::string_view value) {
    Key(key);
    AppendJsonString(text_, value);
  }
  void Number(std::string_view key, uint64_t value) {
    Key(key);
    text_ += std::to_string(value);
  }
  void Int(std::string_view key, int64_t value) {
    Key(key);
    AppendInt(text_, value);
  }
  /// null for a number that is not known (negative, NaN); JSON has no infinity, so that is the text "inf".
  void Figure(std::string_view key, double value) {
    char text[32];
    std::snprintf(text, sizeof(text), "%.6g", value);
    Raw(key, value < 0 || std::isnan(value) ? "null" : std::isinf(value) ? "\"inf\"" : text);
  }
  void Bool(std::string_view key, bool value) {
    Key(key);
    text_ += value ? "true" : "false";
  }
  void Null(std::string_view key) { Raw(key, "null"); }
  void Strings(std::string_view key, const std::vector<std::string>& values) {
    Key(key);
    text_ += '[';
    for (size_t i = 0; i < values.size(); ++i) {
      if (i) text_ += ", ";
      AppendJsonString(text_, values[i]);
    }
    text_ += ']';
  }
  void Ints(std::string_view key, const std::vector<int>& values) {
    Key(key);
    text_ += '[';
    for (size_t i = 0; i < values.size(); ++i) {
      if (i) text_ += ", ";
      AppendInt(text_, values[i]);
    }
    text_ += ']';
  }
  /// `json` is written as it stands.
  void Raw(std::string_view key, std::string_view json) {
    Key(key);
    text_ += json;
  }
  std::string Done() { return text_ + "}"; }

 private:
  std::string text_ = "{";
};

inline std::string JsonString(std::string_view text) {
  std::string out;
  AppendJsonString(out, text);
  return out;
}

/// "[a, b]" of JSON texts.
inline std::string JsonList(const std::vector<std::string>& elements) {
  std::string out = "[";
  for (size_t i = 0; i < elements.size(); ++i) out += (i ? ", " : "") + elements[i];
  return out + "]";
}

}  // namespace msprobe
