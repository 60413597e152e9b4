// One statistic as a dump holds it, and the difference of two.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "compare/values/dialect.h"
#include "json/value.h"

namespace msprobe {

/// Max, Min, Mean or Norm of an item; for what is not a tensor its value. Texts and JSON values belong to someone else.
struct StatValue {
  enum class Kind : uint8_t { kNull, kBool, kInt, kUInt, kDouble, kText, kJson };
  Kind kind = Kind::kNull;
  union {
    bool flag;  // of kBool its value; of kJson true where it counts as its Python text (AsText)
    int64_t i;
    uint64_t u;
    double d = 0;
  };
  std::string_view text;            // kText
  const JsonValue* json = nullptr;  // kJson: a list or an object, or what AsText was made of

  static StatValue Null() { return {}; }
  static StatValue Of(std::string_view text);
  static StatValue Of(double d);
  static StatValue Of(int64_t i);
  static StatValue Of(uint64_t u);
  static StatValue Of(const JsonValue& v);
  /// As Of, but true and false are the texts True and False (fields of a tensor); null for no field.
  static StatValue OfField(const JsonValue* v);
  /// The Python text of a value: 3 is "3".
  static StatValue AsText(const JsonValue* v);

  bool IsNumber() const { return kind == Kind::kInt || kind == Kind::kUInt || kind == Kind::kDouble; }
  bool IsInteger() const { return kind == Kind::kInt || kind == Kind::kUInt; }
  bool IsText() const { return kind == Kind::kText; }
  /// null, or the text that stands for it.
  bool IsNone() const { return kind == Kind::kNull || (kind == Kind::kText && text == "None"); }
  /// Of numbers and booleans.
  double AsDouble() const;
  /// NaN or an infinity, as a number or as text ("inf", " NaN ").
  bool IsNanOrInf() const;
  /// Python's str(): "nan", "inf", "None", "[1, 2]".
  void AppendPyText(std::string* out) const;
  /// The text of a table cell: the same, but "Nan".
  void AppendText(std::string* out) const;
};

/// Equality as Python sees it, 1 == 1.0 == True, integers exactly; NaN equals NaN and null the text None. Lists and
/// objects equal their text.
bool SameValue(const StatValue& a, const StatValue& b);

/// Text of a JSON value as Python's str() of it.
void AppendPyValue(std::string* out, const JsonValue& v);

/// How a statistic differs: two cells of a table or two fields of a graph.
struct StatDiff {
  enum class Cell : uint8_t { kZero, kNumber, kInteger, kNan, kInf, kNegInf, kNA, kDiff };
  Cell diff_cell = Cell::kNA, rel_cell = Cell::kNA;
  double diff = 0;     // target - golden
  double rel = 0;      // |diff / golden| in percent
  __int128 whole = 0;  // of kInteger: the difference exactly

  /// The words of the tables; all differences are floats there.
  void AppendDiff(std::string* out) const;
  void AppendRel(std::string* out) const;  // with "%"
};

StatDiff DiffStats(const StatValue& target, const StatValue& golden, const Dialect& dialect = kTableDialect);

/// More than half of the larger one apart: the limit of the older tool. NaN on one side is, on both is not.
bool IsFarApart(double target, double golden);

}  // namespace msprobe
