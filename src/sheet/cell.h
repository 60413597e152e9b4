// A typed cell on its way to a table of any kind.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace msprobe {

struct Cell {
  enum class Kind : uint8_t {
    kText,      // of a user's data: csv quotes it and disarms formulas
    kWord,      // our own text: safe as it is
    kNumber,    // a number in a workbook, too; its text is what csv shows, Python's repr without one
    kFigure,    // a number that workbooks show as text, too; again with a text or without
    kPercent,   // a kFigure with "%" behind it
    kInteger,   // in `integer`
    kUnsigned,  // in `integer`, as uint64_t
    kBool,      // in `integer`
    kShared,    // the table's shared text of number `integer`
  };
  enum class Color : uint8_t { kNone, kYellow, kRed, kClear };  // kClear: none, whatever the row has

  Kind kind = Kind::kWord;
  Color color = Color::kNone;
  std::string_view text;
  double number = 0;
  int64_t integer = 0;

  static Cell Text(std::string_view text) { return {Kind::kText, Color::kNone, text}; }
  static Cell Word(std::string_view text) { return {Kind::kWord, Color::kNone, text}; }
  static Cell Number(double v, std::string_view text = {}) { return {Kind::kNumber, Color::kNone, text, v}; }
  static Cell Figure(double v, std::string_view text = {}) { return {Kind::kFigure, Color::kNone, text, v}; }
  static Cell Percent(double v) { return {Kind::kPercent, Color::kNone, {}, v}; }
  static Cell Integer(int64_t v) { return {Kind::kInteger, Color::kNone, {}, 0, v}; }
  static Cell Unsigned(uint64_t v) { return {Kind::kUnsigned, Color::kNone, {}, 0, static_cast<int64_t>(v)}; }
  static Cell Bool(bool v) { return {Kind::kBool, Color::kNone, {}, 0, v}; }
  static Cell Shared(int id) { return {Kind::kShared, Color::kNone, {}, 0, id}; }

  /// Has a value in `number`, which may be infinite or NaN.
  bool IsFigure() const { return kind == Kind::kNumber || kind == Kind::kFigure || kind == Kind::kPercent; }
  /// As text; of kShared nothing.
  void AppendText(std::string* out) const;
};

inline constexpr std::string_view kNotAvailableCell = "N/A";

}  // namespace msprobe
