#include "config/value.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/text.h"

namespace msprobe {
namespace {

constexpr size_t kLongestNumber = 64;

bool OneOf(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

std::optional<int64_t> WholeNumber(std::string_view text) {
  if (StartsWith(text, "+")) text.remove_prefix(1);
  int64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return out;
}

std::optional<double> FloatNumber(std::string_view text) {
  if (text.empty() || text.size() > kLongestNumber) return std::nullopt;
  if (StartsWith(text, "+")) text.remove_prefix(1);
  double out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (end != text.data() + text.size() || error == std::errc::invalid_argument) return std::nullopt;
  if (error == std::errc::result_out_of_range) return std::nullopt;
  return out;
}

/// YAML 1.1 asks floats for a point, and their exponents for a sign.
bool IsYamlFloat(std::string_view text) {
  const size_t exponent = text.find_first_of("eE");
  if (text.substr(0, exponent).find('.') == std::string_view::npos) return false;
  return exponent == std::string_view::npos ||
         (exponent + 1 < text.size() && (text[exponent + 1] == '-' || text[exponent + 1] == '+'));
}

}  // namespace

ConfigValue ConfigValue::Of(bool value) {
  ConfigValue out;
  out.kind = Kind::kBool;
  out.flag = value;
  return out;
}

ConfigValue ConfigValue::Of(int64_t value) {
  ConfigValue out;
  out.kind = Kind::kInt;
  out.integer = value;
  return out;
}

ConfigValue ConfigValue::Of(double value) {
  ConfigValue out;
  out.kind = Kind::kFloat;
  out.number = value;
  return out;
}

ConfigValue ConfigValue::Of(std::string_view value) {
  ConfigValue out;
  out.kind = Kind::kText;
  out.text = value;
  return out;
}

ConfigValue ConfigValue::Of(const char* value) { return Of(std::string_view(value)); }

ConfigValue ConfigValue::Of(const JsonValue& value) {  // NOLINT(misc-no-recursion): the parser bounds the depth
  using Json = JsonValue::Kind;
  ConfigValue out;
  switch (value.kind()) {
    case Json::kNull: return out;
    case Json::kBool: return Of(value.Bool());
    case Json::kInt: return Of(value.Int());
    case Json::kUInt: return Of(value.Number());
    case Json::kDouble: return Of(value.Number());
    case Json::kString: return Of(value.Text());
    case Json::kArray:
      out.kind = Kind::kList;
      for (const JsonValue& item : value.Items()) out.items.push_back(Of(item));
      return out;
    case Json::kObject:
      out.kind = Kind::kMap;
      for (const JsonMember& member : value.Members()) {
        out.members.push_back({std::string(member.name), Of(member.value)});
      }
      return out;
  }
  return out;
}

std::optional<double> ConfigValue::AsNumber() const {
  if (kind == Kind::kInt) return static_cast<double>(integer);
  if (kind == Kind::kFloat) return number;
  if (kind == Kind::kText) return FloatNumber(text);
  return std::nullopt;
}

std::optional<bool> ConfigValue::AsBool() const {
  if (kind == Kind::kBool) return flag;
  if (kind == Kind::kInt && (integer == 0 || integer == 1)) return integer == 1;
  if (kind != Kind::kText) return std::nullopt;
  std::string lower = text;
  std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; });
  if (OneOf(lower, {"true", "yes", "on", "1"})) return true;
  if (OneOf(lower, {"false", "no", "off", "0"})) return false;
  return std::nullopt;
}

void ConfigValue::AppendRepr(std::string* out) const {  // NOLINT(misc-no-recursion): readers bound the depth
  switch (kind) {
    case Kind::kNull: out->append("None"); return;
    case Kind::kBool: out->append(flag ? "True" : "False"); return;
    case Kind::kInt: AppendInt(*out, integer); return;
    case Kind::kFloat: AppendPyRepr(*out, number); return;
    case Kind::kText: AppendPyStrRepr(*out, text); return;
    case Kind::kList:
      out->push_back('[');
      for (size_t i = 0; i < items.size(); ++i) {
        if (i > 0) out->append(", ");
        items[i].AppendRepr(out);
      }
      out->push_back(']');
      return;
    case Kind::kMap:
      out->push_back('{');
      for (size_t i = 0; i < members.size(); ++i) {
        if (i > 0) out->append(", ");
        AppendPyStrRepr(*out, members[i].first);
        out->append(": ");
        members[i].second.AppendRepr(out);
      }
      out->push_back('}');
  }
}

std::string ConfigValue::Shown() const {
  if (kind == Kind::kText) return text;
  std::string out;
  AppendRepr(&out);
  return out;
}

void ConfigValue::Write(JsonWriter* json) const {  // NOLINT(misc-no-recursion): readers bound the depth
  switch (kind) {
    case Kind::kNull: json->Null(); return;
    case Kind::kBool: json->Bool(flag); return;
    case Kind::kInt: json->Int(integer); return;
    case Kind::kFloat: json->Number(number); return;
    case Kind::kText: json->String(text); return;
    case Kind::kList: json->Array(items, [&](const ConfigValue& item) { item.Write(json); }); return;
    case Kind::kMap:
      json->BeginObject();
      for (const ConfigMember& member : members) {
        json->Key(member.first);
        member.second.Write(json);
      }
      json->EndObject();
  }
}

bool ConfigValue::operator==(const ConfigValue& o) const {  // NOLINT(misc-no-recursion): readers bound the depth
  const auto plain = [](const ConfigValue& v) -> std::optional<double> {
    if (v.kind == Kind::kBool) return v.flag ? 1 : 0;
    return v.IsText() ? std::nullopt : v.AsNumber();
  };
  if (kind == Kind::kInt && o.kind == Kind::kInt) return integer == o.integer;
  if (const auto a = plain(*this), b = plain(o); a && b) return *a == *b;
  if (kind != o.kind) return false;
  switch (kind) {
    case Kind::kText: return text == o.text;
    case Kind::kList: return items == o.items;
    case Kind::kMap:
      if (members.size() != o.members.size()) return false;
      for (const ConfigMember& member : members) {
        const auto same = std::find_if(o.members.begin(), o.members.end(),
                                       [&](const ConfigMember& other) { return other.first == member.first; });
        if (same == o.members.end() || !(member.second == same->second)) return false;
      }
      return true;
    default: return kind == Kind::kNull;
  }
}

ConfigValue YamlScalar(std::string_view text) {
  if (text.empty() || OneOf(text, {"~", "null", "Null", "NULL"})) return {};
  if (OneOf(text, {"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"})) return ConfigValue::Of(true);
  if (OneOf(text, {"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"})) return ConfigValue::Of(false);
  if (const auto whole = WholeNumber(text)) return ConfigValue::Of(*whole);
  if (const auto number = IsYamlFloat(text) ? FloatNumber(text) : std::nullopt) return ConfigValue::Of(*number);
  if (OneOf(text, {".inf", ".Inf", "-.inf", ".nan", ".NaN"})) {
    if (text.find("an") != std::string_view::npos || text.find("aN") != std::string_view::npos) {
      return ConfigValue::Of(std::nan(""));
    }
    return ConfigValue::Of(text[0] == '-' ? -INFINITY : INFINITY);
  }
  return ConfigValue::Of(text);
}

ConfigValue PythonScalar(std::string_view text) {
  if (text == "None" || text == "null") return {};
  if (text == "True" || text == "true") return ConfigValue::Of(true);
  if (text == "False" || text == "false") return ConfigValue::Of(false);
  if (const auto whole = WholeNumber(text)) return ConfigValue::Of(*whole);
  if (const auto number = FloatNumber(text)) return ConfigValue::Of(*number);
  return ConfigValue::Of(text);
}

}  // namespace msprobe
