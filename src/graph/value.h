// Values of a parameter's fields, written the way existing readers of graphs expect: everything is text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "dump/json.h"

namespace msprobe {

/// A value of a dump after normalisation. Texts and JSON values belong to someone else.
struct Value {
  enum class Kind : uint8_t { kNull, kBool, kInt, kUInt, kDouble, kText, kJson };
  Kind kind = Kind::kNull;
  union {
    bool b;
    int64_t i;
    uint64_t u;
    double d = 0;
  };
  std::string_view text;            // kText
  const JsonValue* json = nullptr;  // kJson: a list or an object

  static Value Null() { return {}; }
  static Value Of(std::string_view text);
  static Value Of(double d);
  static Value Of(int64_t i);
  static Value Of(const JsonValue& v);

  bool is_null() const { return kind == Kind::kNull; }
  bool is_text() const { return kind == Kind::kText; }
  bool is_number() const { return kind == Kind::kInt || kind == Kind::kUInt || kind == Kind::kDouble; }
  double AsDouble() const;
  /// NaN, or an infinity, as a number or as text ("inf", " NaN ").
  bool IsInfOrNan() const;
};

/// Equality as Python sees it: 1 == 1.0 == True, but a list never equals a text.
bool SameValue(const Value& a, const Value& b);

/// str(v) of Python.
void AppendPyStr(std::string& out, const Value& v);
void AppendPyRepr(std::string& out, const JsonValue& v);

/// The text of a field: quotes dropped, None and null as "null", decimal texts rounded to six places.
std::string FieldText(const Value& v);
/// The same as the inside of a JSON string.
void AppendField(std::string& out, const Value& v);
/// `text` as the inside of a JSON string: what AppendJsonString writes between its quotes.
void AppendJsonBody(std::string& out, std::string_view text);
/// True when `text` is its own inside of a JSON string.
bool IsPlainJson(std::string_view text);
/// "12.3456789%" -> "12.345679%". Texts of another form stay as they are.
void RoundDecimalText(std::string* text);

}  // namespace msprobe
