#include "view/file/cells.h"

#include <charconv>
#include <utility>

#include "json/parser.h"
#include "json/scan.h"
#include "json/writer.h"

namespace msprobe::view {
namespace {

constexpr uint64_t kMaxDepth = 64;
// Numbers stay the digits they are: 17-digit floats are shown as they were written.
constexpr JsonOptions kShown{.numbers_as_text = true};
constexpr JsonStyle kShownStyle{.comma = ",", .colon = ":", .ascii = false};
constexpr JsonOptions kStrict{.strict = true, .numbers_as_text = true};

bool Parse(std::string_view json, JsonDoc* doc, JsonOptions options) {
  return NestingDepth(json) <= kMaxDepth && ParseJson(json, "", doc, 0, options).ok();
}

std::string ValueText(const JsonValue& v) {
  if (v.IsString()) return std::string(v.Text());
  if (v.IsBool()) return v.Bool() ? "True" : "False";
  JsonWriter json(kShownStyle);
  json.Value(v);
  return json.Take();
}

}  // namespace

std::vector<ViewRow> ParseRows(std::string_view json) {
  std::vector<ViewRow> rows;
  JsonDoc doc;
  if (!Parse(json, &doc, kShown) || !doc.IsObject()) return rows;
  rows.reserve(doc.size());
  for (const auto& item : doc.Members()) {
    ViewRow& row = rows.emplace_back();
    row.name = item.name;
    if (!item.value.IsObject()) {
      row.values.emplace_back("value", ValueText(item.value));
      continue;
    }
    row.values.reserve(item.value.size());
    for (const auto& field : item.value.Members()) {
      row.values.emplace_back(field.name, ValueText(field.value));
    }
  }
  return rows;
}

std::vector<std::string> ParseTexts(std::string_view json) {
  std::vector<std::string> texts;
  JsonDoc doc;
  if (!Parse(json, &doc, kShown) || !doc.IsArray()) return texts;
  for (const auto& v : doc.Items()) {
    if (v.IsString()) texts.emplace_back(v.Text());
  }
  return texts;
}

std::vector<int64_t> ParseInts(std::string_view json) {
  std::vector<int64_t> ints;
  for (const std::string& text : ParseTexts(json)) {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc() && end == text.data() + text.size()) ints.push_back(value);
  }
  return ints;
}

std::string LastText(std::string_view json) {
  // Links are lists of plain names, a quarter of a million of them in a large graph: no parser is needed for those.
  if (json.size() > 1 && json.front() == '[' && json.find('\\') == std::string_view::npos) {
    const size_t close = json.rfind('"');
    if (close == std::string_view::npos || close == 0) return "";
    const size_t open = json.rfind('"', close - 1);
    if (open == std::string_view::npos) return "";
    return std::string(json.substr(open + 1, close - open - 1));
  }
  std::vector<std::string> texts = ParseTexts(json);
  return texts.empty() ? "" : std::move(texts.back());
}

std::string_view ObjectText(std::string_view json) {
  JsonDoc doc;
  if (!Parse(json, &doc, kStrict) || !doc.IsObject() || doc.empty()) return {};
  return json;
}

}  // namespace msprobe::view
