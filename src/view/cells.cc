#include "view/cells.h"

#include <charconv>

#include "dump/json.h"
#include "dump/scan.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#include <rapidjson/memorystream.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>
#pragma GCC diagnostic pop

namespace msprobe::view {
namespace {

constexpr uint64_t kMaxDepth = 64;
// Numbers stay the digits they are: 17-digit floats are shown as they were written, and RapidJSON's conversion, which
// reads out of bounds for some exponents, never runs.
constexpr unsigned kAsText =
    rapidjson::kParseIterativeFlag | rapidjson::kParseNanAndInfFlag | rapidjson::kParseNumbersAsStringsFlag;
// What a browser accepts.
constexpr unsigned kStrict =
    rapidjson::kParseIterativeFlag | rapidjson::kParseNumbersAsStringsFlag | rapidjson::kParseValidateEncodingFlag;

bool IsNumberPart(char c) { return (c >= '0' && c <= '9') || c == '.' || c == 'e' || c == 'E' || c == '+' || c == '-'; }

// End of the JSON number at `i`; `i` itself where the characters of a number are not one.
size_t NumberEnd(std::string_view json, size_t i) {
  const auto digits = [&](size_t at) {
    while (at < json.size() && json[at] >= '0' && json[at] <= '9') ++at;
    return at;
  };
  const size_t whole = i + (json[i] == '-');
  size_t end = digits(whole);
  if (end == whole || (end - whole > 1 && json[whole] == '0')) return i;
  if (end < json.size() && json[end] == '.') {
    const size_t fraction = end + 1;
    if ((end = digits(fraction)) == fraction) return i;
  }
  if (end < json.size() && (json[end] == 'e' || json[end] == 'E')) {
    size_t exponent = end + 1;
    if (exponent < json.size() && (json[exponent] == '+' || json[exponent] == '-')) ++exponent;
    if ((end = digits(exponent)) == exponent) return i;
  }
  return end < json.size() && IsNumberPart(json[end]) ? i : end;
}

// The same text with its numbers in quotes, which is how they are read anyway. What is no number stays and is refused.
std::string WithNumbersQuoted(std::string_view json) {
  std::string out;
  out.reserve(json.size() + json.size() / 4);
  bool in_string = false;
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    const char next = i + 1 < json.size() ? json[i + 1] : '\0';
    const bool is_number = (c >= '0' && c <= '9') || (c == '-' && next >= '0' && next <= '9');
    if (in_string && c == '\\') {
      out += c;
      if (++i < json.size()) out += json[i];
    } else if (in_string || !is_number) {
      out += c;
      if (c == '"') in_string = !in_string;
    } else {
      const size_t end = NumberEnd(json, i);
      if (end == i) {
        out += c;
        continue;
      }
      out.append("\"").append(json, i, end - i).append("\"");
      i = end - 1;
    }
  }
  return out;
}

template <unsigned kFlags>
bool Parse(std::string_view json, rapidjson::Document* doc) {
  // RapidJSON takes a zero byte for the end.
  if (json.empty() || json.find('\0') != std::string_view::npos || NestingDepth(json) > kMaxDepth) return false;
  rapidjson::MemoryStream stream(json.data(), json.size());
  doc->ParseStream<kFlags, rapidjson::UTF8<>>(stream);
  if (!doc->HasParseError()) return true;
  // RapidJSON refuses exponents beyond a double even where it converts nothing; one such number is no reason to lose
  // the row.
  if (doc->GetParseError() != rapidjson::kParseErrorNumberTooBig) return false;
  const std::string quoted = WithNumbersQuoted(json);
  rapidjson::MemoryStream again(quoted.data(), quoted.size());
  doc->ParseStream<kFlags, rapidjson::UTF8<>>(again);
  return !doc->HasParseError();
}

std::string ValueText(const rapidjson::Value& v) {
  if (v.IsString()) return std::string(Text(v));
  if (v.IsNull()) return "null";
  if (v.IsBool()) return v.GetBool() ? "True" : "False";
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer, rapidjson::UTF8<>, rapidjson::UTF8<>, rapidjson::CrtAllocator,
                    rapidjson::kWriteNanAndInfFlag>
      writer(buffer);
  v.Accept(writer);
  return {buffer.GetString(), buffer.GetSize()};
}

}  // namespace

std::vector<ViewRow> ParseRows(std::string_view json) {
  std::vector<ViewRow> rows;
  rapidjson::Document doc;
  if (!Parse<kAsText>(json, &doc) || !doc.IsObject()) return rows;
  rows.reserve(doc.MemberCount());
  for (const auto& item : doc.GetObject()) {
    ViewRow& row = rows.emplace_back();
    row.name = Text(item.name);
    if (!item.value.IsObject()) {
      row.values.emplace_back("value", ValueText(item.value));
      continue;
    }
    row.values.reserve(item.value.MemberCount());
    for (const auto& field : item.value.GetObject()) {
      row.values.emplace_back(Text(field.name), ValueText(field.value));
    }
  }
  return rows;
}

std::vector<std::string> ParseTexts(std::string_view json) {
  std::vector<std::string> texts;
  rapidjson::Document doc;
  if (!Parse<kAsText>(json, &doc) || !doc.IsArray()) return texts;
  for (const auto& v : doc.GetArray()) {
    if (v.IsString()) texts.emplace_back(Text(v));
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
  rapidjson::Document doc;
  if (!Parse<kStrict>(json, &doc) || !doc.IsObject() || doc.ObjectEmpty()) return {};
  return json;
}

}  // namespace msprobe::view
