// One statistic as a dump holds it, and the difference of two, by the rules of the comparison tables.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "dump/json.h"

namespace msprobe {

/// Max, Min, Mean or Norm of an item; for what is no tensor its value as text.
struct StatValue {
  enum class Kind : uint8_t { kInt, kUInt, kDouble, kBool, kText };
  Kind kind = Kind::kText;
  bool flag = false;
  int64_t i = 0;
  uint64_t u = 0;
  double d = 0;
  std::string text;  // of kText: "None", "True", "mean", "[0, 1]"

  void SetText(std::string_view s);
  /// From JSON as Python reads it: null is the text None, lists and objects their repr.
  void Set(const JsonValue& v);
  /// As Set, but true and false become the texts True and False (fields of a tensor).
  void SetField(const JsonValue* v);
  bool IsNumber() const { return kind == Kind::kInt || kind == Kind::kUInt || kind == Kind::kDouble; }
  /// Of numbers.
  double AsDouble() const;
  /// NaN or an infinity, as a number or as text.
  bool IsNanOrInf() const;
  /// The text of a table cell: "Nan", "inf", "-inf", Python's repr otherwise.
  void AppendText(std::string* out) const;
};

/// Text of a JSON value as Python's str() of it.
void AppendPyValue(std::string* out, const JsonValue& v);

/// How a statistic differs: two cells of the table.
struct StatDiff {
  enum class Cell : uint8_t { kZero, kNumber, kNan, kInf, kNegInf, kNA, kDiff };
  Cell diff_cell = Cell::kNA, rel_cell = Cell::kNA;
  double diff = 0;  // target - golden
  double rel = 0;   // |diff / golden| in percent

  void AppendDiff(std::string* out) const;
  void AppendRel(std::string* out) const;  // with "%"
};

StatDiff DiffStats(const StatValue& target, const StatValue& golden);

}  // namespace msprobe
