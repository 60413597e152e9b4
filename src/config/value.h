// A value of a configuration, as the file that it comes from types it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "json/value.h"
#include "json/writer.h"

namespace msprobe {

struct ConfigMember;

struct ConfigValue {
  enum class Kind : uint8_t { kNull, kBool, kInt, kFloat, kText, kList, kMap };
  Kind kind = Kind::kNull;
  bool flag = false;
  int64_t integer = 0;
  double number = 0;
  std::string text;                   // of kText; of a number the way it is written, "" if Python's repr
  std::vector<ConfigValue> items;     // of kList
  std::vector<ConfigMember> members;  // of kMap, in the order of the file

  bool IsNull() const { return kind == Kind::kNull; }
  bool IsText() const { return kind == Kind::kText; }
  bool IsMap() const { return kind == Kind::kMap; }
  bool IsList() const { return kind == Kind::kList; }

  static ConfigValue Of(bool value);
  static ConfigValue Of(int64_t value);
  static ConfigValue Of(double value);
  static ConfigValue Of(std::string_view value);
  static ConfigValue Of(const char* value);
  static ConfigValue Of(const JsonValue& value);

  /// A number, a truth as 0 or 1 is none; texts that are written as one count ("1e-4", "4_096" does not).
  std::optional<double> AsNumber() const;
  /// true, True, yes, on and 1 as Python and YAML write them; nullopt for anything else.
  std::optional<bool> AsBool() const;
  /// For people: a text as it is, lists as [a, b], nothing as None.
  std::string Shown() const;
  /// As Python's repr.
  void AppendRepr(std::string* out) const;
  void Write(JsonWriter* json) const;
  /// Equal as Python compares: 1 == 1.0 == True, lists by elements.
  bool operator==(const ConfigValue& o) const;
};

struct ConfigMember {
  std::string first;
  ConfigValue second;
};

/// A word of YAML or of a log as a value: true, 12, 1.5, null, else the text. YAML 1.1 as PyYAML reads it, where 1e-5
/// is a text.
ConfigValue YamlScalar(std::string_view text);
/// As above, but what Python's float() reads is a number.
ConfigValue PythonScalar(std::string_view text);

/// Appends the character at `at`, or what it and the next stand for where it is a backslash, and goes behind it.
inline void TakeEscaped(std::string_view text, size_t* at, std::string* out) {
  if (text[*at] != '\\' || *at + 1 >= text.size()) {
    *out += text[(*at)++];
    return;
  }
  const char c = text[*at + 1];
  *out += c == 'n' ? '\n' : c == 't' ? '\t' : c;
  *at += 2;
}

}  // namespace msprobe
