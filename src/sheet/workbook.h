// A small workbook of several sheets with names and columns of their own.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "sheet/cell.h"

namespace msprobe {

/// A cell that owns its text; no value: nothing stands there.
struct SheetValue {
  enum class Kind : uint8_t { kNone, kText, kNumber, kBool };
  Kind kind = Kind::kNone;
  std::string text;
  double number = 0;
  Cell::Color color = Cell::Color::kNone;

  static SheetValue Of(std::string text, Cell::Color color = Cell::Color::kNone) {
    return {Kind::kText, std::move(text), 0, color};
  }
  static SheetValue Of(double number) { return {Kind::kNumber, {}, number, Cell::Color::kNone}; }
  static SheetValue Of(bool truth) { return {Kind::kBool, {}, truth ? 1.0 : 0.0, Cell::Color::kNone}; }
};

struct Sheet {
  std::string name;
  std::vector<std::string> columns;
  std::vector<std::vector<SheetValue>> rows;
};

/// Writes all sheets, and replaces what is at `path`.
Status WriteWorkbook(const std::string& path, const std::vector<Sheet>& sheets);

}  // namespace msprobe
