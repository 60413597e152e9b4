#include "curves/table_curves.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "base/message.h"
#include "base/text.h"
#include "curves/known_names.h"
#include "curves/number_text.h"
#include "json/parser.h"
#include "sheet/sheet_reader.h"

namespace msprobe {
namespace {

struct CsvColumns {
  int step = -1;
  std::array<int, kCurveKinds.size()> values{-1, -1, -1, -1};
};

constexpr size_t kMostOthers = 200;

void AddOther(const std::string& name, std::vector<std::string>* out) {
  const bool there = std::find(out->begin(), out->end(), name) != out->end();
  if (!name.empty() && !there && !IsOfMachines(name) && out->size() < kMostOthers) out->push_back(name);
}

std::optional<NumberText> CellNumber(const std::vector<SheetCell>& cells, int column) {
  if (column < 0 || static_cast<size_t>(column) >= cells.size()) return std::nullopt;
  const std::string_view text = cells[static_cast<size_t>(column)].text;
  return ReadNumberText(text.substr(SkipToValue(text)));
}

StatusOr<CsvColumns> FindColumns(const std::vector<std::string>& names, const std::string& path,
                                 const CurveNames& own) {
  CsvColumns out;
  out.step = FindStepName(names);
  for (const CurveKind kind : kCurveKinds) out.values[static_cast<size_t>(kind)] = FindCurveName(names, kind, own);
  if (names.size() == 3 && names[0] == "Wall time" && names[2] == "Value" && out.values[0] < 0) out.values[0] = 2;
  if (out.values[0] < 0) {
    return BadInput(Msg("{} has no column that is known as a loss: name it with --loss ({})", OneLine(path),
                        OneLine(fmt::format("{}", fmt::join(names, ", ")).substr(0, 300))));
  }
  return out;
}

Status TakeState(const JsonValue& entry, const CurveNames& names, int64_t* last, CurveCollector* points,
                 std::vector<std::string>* others) {
  std::vector<std::string> keys;
  bool summary = false;
  for (const JsonMember& member : entry.Members()) {
    summary = summary || IsRunSummary(member.name);
    keys.emplace_back(member.name);
  }
  const int step = FindStepName(keys);
  const int64_t at = step >= 0 ? static_cast<int64_t>(entry[keys[static_cast<size_t>(step)]].Int()) : *last + 1;
  for (const CurveKind kind : kCurveKinds) {
    const int found = FindCurveName(keys, kind, names);
    if (found < 0 || (summary && kind != CurveKind::kEvalLoss)) continue;
    const JsonValue& value = entry[keys[static_cast<size_t>(found)]];
    const auto text = value.IsString() ? ReadNumberText(value.Text()) : std::nullopt;
    if (!value.IsNumber() && !text) continue;
    const double number = text ? text->value : value.Number();
    MSP_RETURN_IF_ERROR(points->Add(kind, at, number, text ? text->unit : std::fabs(number) * 0x1p-52));
  }
  for (const std::string& key : keys) {
    const auto read = [&](CurveKind kind) {
      return keys[static_cast<size_t>(std::max(FindCurveName(keys, kind, names), 0))] == key &&
             FindCurveName(keys, kind, names) >= 0;
    };
    if (summary || !entry[key].IsNumber() || std::any_of(kCurveKinds.begin(), kCurveKinds.end(), read)) continue;
    AddOther(key, others);
  }
  *last = at;
  return OkStatus();
}

}  // namespace

StatusOr<RunCurves> ReadCsvCurves(std::string_view text, const std::string& path, const CurveNames& names) {
  RunCurves out{path, "csv", {}, {}};
  CurveCollector points;
  CsvColumns columns;
  int64_t row = 0;
  bool header = true;
  const auto take = [&](const std::vector<SheetCell>& cells, bool) -> Status {
    if (header) {
      header = false;
      std::vector<std::string> titles;
      for (const SheetCell& cell : cells) titles.push_back(cell.text);
      MSP_ASSIGN_OR_RETURN(columns, FindColumns(titles, path, names));
      for (size_t i = 0; i < titles.size(); ++i) {
        const auto is = [&](int column) { return column == static_cast<int>(i); };
        if (std::none_of(columns.values.begin(), columns.values.end(), is)) AddOther(titles[i], &out.others);
      }
      return OkStatus();
    }
    ++row;
    const auto step = CellNumber(cells, columns.step);
    if (columns.step >= 0 && !(step && std::fabs(step->value) < 1e15)) return OkStatus();
    const int64_t at = step ? static_cast<int64_t>(step->value) : row;
    for (const CurveKind kind : kCurveKinds) {
      const auto value = CellNumber(cells, columns.values[static_cast<size_t>(kind)]);
      if (value) MSP_RETURN_IF_ERROR(points.Add(kind, at, value->value, value->unit));
    }
    return OkStatus();
  };
  MSP_RETURN_IF_ERROR(ReadCsvText(text, path, take));
  if (points.count(CurveKind::kLoss) == 0) {
    return BadInput(Msg("{} has no row with a loss: give a table with a row for each step", OneLine(path)));
  }
  if (columns.step < 0) out.notes.emplace_back(Msg("rows without a step are counted 1, 2, ..."));
  points.Finish(&out);
  return out;
}

StatusOr<RunCurves> ReadTrainerState(std::string_view text, const std::string& path, const CurveNames& names) {
  JsonDoc doc;
  MSP_RETURN_IF_ERROR(ParseJson(text, path, &doc));
  const JsonValue& history = doc.IsArray() ? static_cast<const JsonValue&>(doc) : doc["log_history"];
  RunCurves out{path, "trainer_state.json", {}, {}};
  CurveCollector points;
  int64_t last = 0;
  for (const JsonValue& entry : history.Items())
    MSP_RETURN_IF_ERROR(TakeState(entry, names, &last, &points, &out.others));
  if (points.count(CurveKind::kLoss) == 0) {
    return BadInput(Msg("{} has no \"log_history\" with a loss: give trainer_state.json of transformers, or the log",
                        OneLine(path)));
  }
  points.Finish(&out);
  return out;
}

}  // namespace msprobe
