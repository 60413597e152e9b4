#include "graph/value.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/text.h"

namespace msprobe {
namespace {

constexpr size_t kMaxDigits = 20;
constexpr size_t kPlaces = 6;

void AppendUInt(std::string& out, uint64_t u) { out += std::to_string(u); }

bool SameJson(const JsonValue& a, const JsonValue& b) {
  if (a.IsNumber() && b.IsNumber()) return SameValue(Value::Of(a), Value::Of(b));
  if (a.IsArray() && b.IsArray()) {
    return a.Size() == b.Size() && std::equal(a.Begin(), a.End(), b.Begin(),
                                              [](const JsonValue& x, const JsonValue& y) { return SameJson(x, y); });
  }
  return a == b;
}

// Needs another pass over the characters; most texts do not.
bool IsPlain(std::string_view s) {
  if (!s.empty() && s[0] >= '0' && s[0] <= '9' && s.find('.') != std::string_view::npos) return false;
  return s.find('\'') == std::string_view::npos && s.find("None") == std::string_view::npos;
}

std::string WithoutQuotes(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\'') continue;
    out += text[i];
  }
  for (size_t at = out.find("None"); at != std::string::npos; at = out.find("None", at)) out.replace(at, 4, "null");
  return out;
}

}  // namespace

Value Value::Of(std::string_view text) {
  Value v;
  v.kind = Kind::kText;
  v.text = text;
  return v;
}

Value Value::Of(double d) {
  Value v;
  v.kind = Kind::kDouble;
  v.d = d;
  return v;
}

Value Value::Of(int64_t i) {
  Value v;
  v.kind = Kind::kInt;
  v.i = i;
  return v;
}

Value Value::Of(const JsonValue& j) {
  if (j.IsString()) return Of(Text(j));
  Value v;
  if (j.IsBool()) {
    v.kind = Kind::kBool;
    v.b = j.GetBool();
  } else if (j.IsInt64()) {
    v.kind = Kind::kInt;
    v.i = j.GetInt64();
  } else if (j.IsUint64()) {
    v.kind = Kind::kUInt;
    v.u = j.GetUint64();
  } else if (j.IsNumber()) {
    v.kind = Kind::kDouble;
    v.d = j.GetDouble();
  } else if (!j.IsNull()) {
    v.kind = Kind::kJson;
    v.json = &j;
  }
  return v;
}

double Value::AsDouble() const {
  switch (kind) {
    case Kind::kBool: return b ? 1 : 0;
    case Kind::kInt: return static_cast<double>(i);
    case Kind::kUInt: return static_cast<double>(u);
    case Kind::kDouble: return d;
    default: return std::nan("");
  }
}

bool Value::IsInfOrNan() const {
  if (kind == Kind::kDouble) return !std::isfinite(d);
  if (kind != Kind::kText || text.size() > 16) return false;
  std::string low;
  for (char c : text)
    if (!std::isspace(static_cast<unsigned char>(c)))
      low += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return low == "inf" || low == "-inf" || low == "nan";
}

bool SameValue(const Value& a, const Value& b) {
  using Kind = Value::Kind;
  const bool na = a.is_number() || a.kind == Kind::kBool, nb = b.is_number() || b.kind == Kind::kBool;
  if (na && nb) {
    if (a.kind == Kind::kInt && b.kind == Kind::kInt) return a.i == b.i;
    if (a.kind == Kind::kUInt && b.kind == Kind::kUInt) return a.u == b.u;
    return a.AsDouble() == b.AsDouble();
  }
  if (a.kind != b.kind) return false;
  if (a.kind == Kind::kText) return a.text == b.text;
  if (a.kind == Kind::kJson) return SameJson(*a.json, *b.json);
  return true;
}

void AppendPyRepr(std::string& out, const JsonValue& v) {
  if (v.IsString()) return AppendPyStrRepr(out, Text(v));
  if (v.IsArray()) {
    out += '[';
    const char* comma = "";
    for (const JsonValue& e : v.GetArray()) {
      out += comma;
      comma = ", ";
      AppendPyRepr(out, e);
    }
    out += ']';
    return;
  }
  if (v.IsObject()) {
    out += '{';
    const char* comma = "";
    for (const auto& m : v.GetObject()) {
      out += comma;
      comma = ", ";
      AppendPyStrRepr(out, Text(m.name));
      out += ": ";
      AppendPyRepr(out, m.value);
    }
    out += '}';
    return;
  }
  AppendPyStr(out, Value::Of(v));
}

void AppendPyStr(std::string& out, const Value& v) {
  switch (v.kind) {
    case Value::Kind::kNull: out += "None"; break;
    case Value::Kind::kBool: out += v.b ? "True" : "False"; break;
    case Value::Kind::kInt: AppendInt(out, v.i); break;
    case Value::Kind::kUInt: AppendUInt(out, v.u); break;
    case Value::Kind::kDouble: AppendPyRepr(out, v.d); break;
    case Value::Kind::kText: out += v.text; break;
    case Value::Kind::kJson:
      if (v.json != nullptr) AppendPyRepr(out, *v.json);
      break;
  }
}

void RoundDecimalText(std::string* text) {
  std::string_view s = *text;
  const bool percent = EndsWith(s, "%");
  if (percent) s.remove_suffix(1);
  const size_t dot = s.find('.');
  if (dot == std::string_view::npos || dot > kMaxDigits || !IsDigits(s.substr(0, dot)) || !IsDigits(s.substr(dot + 1)))
    return;
  const size_t places = s.size() - dot - 1;
  if (places <= kPlaces || places > kMaxDigits) return;
  std::string out;
  AppendFixed(out, std::strtod(std::string(s).c_str(), nullptr), kPlaces);
  if (percent) out += '%';
  *text = std::move(out);
}

std::string FieldText(const Value& v) {
  std::string out;
  if (v.is_null()) return "null";
  if (!v.is_text() || IsPlain(v.text)) {
    AppendPyStr(out, v);
    return out;
  }
  out = WithoutQuotes(v.text);
  RoundDecimalText(&out);
  return out;
}

bool IsPlainJson(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7F && c != '"' && c != '\\'; });
}

void AppendJsonBody(std::string& out, std::string_view text) {
  if (IsPlainJson(text)) {
    out += text;
    return;
  }
  const size_t begin = out.size();
  AppendJsonString(out, text);
  out.erase(begin, 1);
  out.pop_back();
}

void AppendField(std::string& out, const Value& v) {
  switch (v.kind) {
    case Value::Kind::kNull: out += "null"; return;
    case Value::Kind::kText:
      if (IsPlain(v.text)) return AppendJsonBody(out, v.text);
      return AppendJsonBody(out, FieldText(v));
    case Value::Kind::kJson: return AppendJsonBody(out, FieldText(v));
    default: AppendPyStr(out, v);
  }
}

}  // namespace msprobe
