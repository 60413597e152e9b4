#include "compare/values/stat_value.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/text.h"

namespace msprobe {
namespace {

bool ContainsNoCase(std::string_view s, std::string_view lower) {
  for (size_t i = 0; i + lower.size() <= s.size(); ++i) {
    if (EqualsNoCase(s.substr(i, lower.size()), lower)) return true;
  }
  return false;
}

/// The kinds that decide which rule applies to two unequal values.
enum class Type : uint8_t { kNum, kNan, kInf, kNegInf, kDevice, kNA, kOther };

/// A decimal number in text, as "3" or "-1e5".
bool ParseNumber(std::string_view s, double* out) {
  if (!s.empty() && s[0] == '+') s.remove_prefix(1);
  if (s.empty() || !(s[0] == '-' || s[0] == '.' || (s[0] >= '0' && s[0] <= '9'))) return false;
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), *out);
  return error == std::errc() && end == s.data() + s.size();
}

Type TypeOfDouble(double d) {
  if (std::isnan(d)) return Type::kNan;
  if (std::isinf(d)) return d > 0 ? Type::kInf : Type::kNegInf;
  return Type::kNum;
}

/// The text of a cell; rendered into `scratch` where it is none of the dump's.
std::string_view TextOf(const StatValue& v, std::string* scratch) {
  if (v.IsText()) return v.text;
  v.AppendPyText(scratch);
  return *scratch;
}

Type TypeOf(const StatValue& v, double* number) {
  if (v.IsNumber()) {
    *number = v.AsDouble();
    return TypeOfDouble(*number);
  }
  if (v.kind == StatValue::Kind::kBool || v.IsNone()) return Type::kOther;
  std::string scratch;
  const std::string_view s = TextOf(v, &scratch);
  if (EqualsNoCase(s, "nan")) return Type::kNan;
  if (EqualsNoCase(s, "inf")) return Type::kInf;
  if (EqualsNoCase(s, "-inf")) return Type::kNegInf;
  if (ParseNumber(s, number)) return Type::kNum;
  if (ContainsNoCase(s, "npu") || ContainsNoCase(s, "cpu") || ContainsNoCase(s, "cuda")) return Type::kDevice;
  return s == "N/A" ? Type::kNA : Type::kOther;
}

/// Equal as text: 1 and 1.0 are not.
bool SameText(const StatValue& a, const StatValue& b) {
  using Kind = StatValue::Kind;
  if (a.kind == b.kind) {
    switch (a.kind) {
      case Kind::kNull: return true;
      case Kind::kInt: return a.i == b.i;
      case Kind::kUInt: return a.u == b.u;
      case Kind::kBool: return a.flag == b.flag;
      case Kind::kText: return a.text == b.text;
      case Kind::kDouble:
        return (a.d == b.d && std::signbit(a.d) == std::signbit(b.d)) || (std::isnan(a.d) && std::isnan(b.d));
      case Kind::kJson: break;
    }
  }
  std::string x, y;
  a.AppendText(&x);
  b.AppendText(&y);
  return x == y;
}

__int128 Wide(const StatValue& v) { return v.kind == StatValue::Kind::kInt ? __int128{v.i} : __int128{v.u}; }

/// Of two numbers. Integers are subtracted exactly: as doubles, neighbours above 2^53 would look equal.
StatDiff Subtract(const StatValue& a, const StatValue& b, double x, double y) {
  StatDiff out;
  out.diff_cell = StatDiff::Cell::kNumber;
  out.diff = x - y;
  if (a.IsInteger() && b.IsInteger()) {
    out.diff_cell = StatDiff::Cell::kInteger;
    out.whole = Wide(a) - Wide(b);
    out.diff = static_cast<double>(out.whole);
  }
  if (y != 0) {
    out.rel_cell = StatDiff::Cell::kNumber;
    out.rel = std::fabs(out.diff / y * 100);
  }
  return out;
}

StatDiff Both(StatDiff::Cell cell) {
  StatDiff out;
  out.diff_cell = out.rel_cell = cell;
  return out;
}

/// Graphs say nothing of texts, and subtract infinities as Python does.
StatDiff DiffNumbers(const StatValue& target, const StatValue& golden) {
  using Cell = StatDiff::Cell;
  if (!target.IsNumber() || !golden.IsNumber()) return Both(Cell::kNA);
  StatDiff out = Subtract(target, golden, target.AsDouble(), golden.AsDouble());
  if (std::isnan(out.diff)) return Both(Cell::kNan);
  if (std::isinf(out.diff)) out.diff_cell = out.diff < 0 ? Cell::kNegInf : Cell::kInf;
  return out;
}

/// As Python compares lists and objects.
bool SameJson(const JsonValue& a, const JsonValue& b) {
  if (a.IsNumber() && b.IsNumber()) return SameValue(StatValue::Of(a), StatValue::Of(b));
  if (a.IsArray() && b.IsArray()) {
    return std::ranges::equal(a.Items(), b.Items(), SameJson);
  }
  return a == b;
}

bool SameNumber(const StatValue& a, const StatValue& b) {
  if (a.IsInteger() && b.IsInteger()) return Wide(a) == Wide(b);
  const double x = a.AsDouble(), y = b.AsDouble();
  return x == y || (std::isnan(x) && std::isnan(y));
}

void AppendRepr(std::string* out, const JsonValue& v) {
  v.IsString() ? AppendPyStrRepr(*out, v.Text()) : AppendPyValue(out, v);
}

}  // namespace

StatValue StatValue::Of(std::string_view text) {
  StatValue v;
  v.kind = Kind::kText;
  v.text = text;
  return v;
}

StatValue StatValue::Of(double d) {
  StatValue v;
  v.kind = Kind::kDouble;
  v.d = d;
  return v;
}

StatValue StatValue::Of(int64_t i) {
  StatValue v;
  v.kind = Kind::kInt;
  v.i = i;
  return v;
}

StatValue StatValue::Of(uint64_t u) {
  StatValue v;
  v.kind = Kind::kUInt;
  v.u = u;
  return v;
}

StatValue StatValue::Of(const JsonValue& v) {
  if (v.IsInt()) return Of(v.Int());
  if (v.IsUInt()) return Of(v.UInt());
  if (v.IsNumber()) return Of(v.Number());
  if (v.IsString()) return Of(v.Text());
  StatValue out;
  if (v.IsBool()) {
    out.kind = Kind::kBool;
    out.flag = v.Bool();
  } else if (!v.IsNull()) {
    out.kind = Kind::kJson;
    out.json = &v;
  }
  return out;
}

StatValue StatValue::OfField(const JsonValue* v) {
  if (!v) return Null();
  if (v->IsBool()) return Of(v->Bool() ? std::string_view("True") : std::string_view("False"));
  return Of(*v);
}

StatValue StatValue::AsText(const JsonValue* v) {
  if (!v || v->IsNull()) return Null();
  if (v->IsString()) return Of(v->Text());
  StatValue out;
  out.kind = Kind::kJson;
  out.flag = true;
  out.json = v;
  return out;
}

double StatValue::AsDouble() const {
  switch (kind) {
    case Kind::kBool: return flag ? 1 : 0;
    case Kind::kInt: return static_cast<double>(i);
    case Kind::kUInt: return static_cast<double>(u);
    case Kind::kDouble: return d;
    default: return std::numeric_limits<double>::quiet_NaN();
  }
}

bool StatValue::IsNanOrInf() const {
  if (kind == Kind::kDouble) return !std::isfinite(d);
  if (kind == Kind::kJson) return json->IsDouble() && !std::isfinite(json->Number());
  if (kind != Kind::kText) return false;
  const auto space = [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); };
  std::string_view s = text;
  while (!s.empty() && space(s.front())) s.remove_prefix(1);
  while (!s.empty() && space(s.back())) s.remove_suffix(1);
  return EqualsNoCase(s, "nan") || EqualsNoCase(s, "inf") || EqualsNoCase(s, "-inf");
}

void StatValue::AppendPyText(std::string* out) const {
  switch (kind) {
    case Kind::kNull: *out += "None"; return;
    case Kind::kBool: *out += flag ? "True" : "False"; return;
    case Kind::kInt: return AppendInt(*out, i);
    case Kind::kUInt: *out += std::to_string(u); return;
    case Kind::kDouble: return AppendPyRepr(*out, d);
    case Kind::kText: *out += text; return;
    case Kind::kJson: return AppendPyValue(out, *json);
  }
}

void StatValue::AppendText(std::string* out) const {
  const bool nan = kind == Kind::kDouble ? std::isnan(d) : kind == Kind::kText && EqualsNoCase(text, "nan");
  if (nan) {
    *out += "Nan";
  } else {
    AppendPyText(out);
  }
}

bool SameValue(const StatValue& a, const StatValue& b) {
  using Kind = StatValue::Kind;
  const auto counts = [](const StatValue& v) { return v.IsNumber() || v.kind == Kind::kBool; };
  if (counts(a) && counts(b)) return SameNumber(a, b);
  if (a.IsText() && b.IsText()) return a.text == b.text;
  if (a.kind == Kind::kJson && b.kind == Kind::kJson && SameJson(*a.json, *b.json)) return true;
  return SameText(a, b);
}

void AppendPyValue(std::string* out, const JsonValue& v) {
  const char* separator = "";
  if (v.IsArray()) {
    *out += '[';
    for (const JsonValue& element : v.Items()) {
      *out += separator;
      AppendRepr(out, element);
      separator = ", ";
    }
    *out += ']';
  } else if (v.IsObject()) {
    *out += '{';
    for (const auto& member : v.Members()) {
      *out += separator;
      AppendPyStrRepr(*out, member.name);
      *out += ": ";
      AppendRepr(out, member.value);
      separator = ", ";
    }
    *out += '}';
  } else {
    StatValue::Of(v).AppendPyText(out);
  }
}

void StatDiff::AppendDiff(std::string* out) const {
  switch (diff_cell) {
    case Cell::kZero: *out += '0'; return;
    case Cell::kNumber:
    case Cell::kInteger: return AppendPyRepr(*out, diff);
    case Cell::kNan: *out += "Nan"; return;
    case Cell::kInf: *out += "inf"; return;
    case Cell::kNegInf: *out += "-inf"; return;
    case Cell::kNA: *out += "N/A"; return;
    case Cell::kDiff: *out += "Diff"; return;
  }
}

void StatDiff::AppendRel(std::string* out) const {
  if (rel_cell == Cell::kNumber) {
    AppendPyRepr(*out, rel);
    *out += '%';
    return;
  }
  StatDiff same;
  same.diff_cell = rel_cell;
  same.AppendDiff(out);
}

StatDiff DiffStats(const StatValue& target, const StatValue& golden, const Dialect& dialect) {
  using Cell = StatDiff::Cell;
  if (dialect.numbers_only) return DiffNumbers(target, golden);
  if (SameText(target, golden)) return Both(Cell::kZero);
  double x = 0, y = 0;
  const Type a = TypeOf(target, &x), b = TypeOf(golden, &y);
  if (a == Type::kNum && b == Type::kNum) {
    StatDiff out = Subtract(target, golden, x, y);
    out.diff_cell = Cell::kNumber;  // all numbers of a table are floats
    if (y == 0) out.rel_cell = Cell::kInf;
    return out;
  }
  if (a == Type::kNA || b == Type::kNA) return Both(Cell::kNA);
  if (a == Type::kDevice && b == Type::kDevice) return Both(Cell::kNA);
  if (a == Type::kDevice || b == Type::kDevice || a == Type::kOther || b == Type::kOther) return Both(Cell::kDiff);
  if (a == Type::kNan || b == Type::kNan) return Both(Cell::kNan);
  // One of the two is an infinity: the sign is that of target - golden.
  if (a == Type::kInf || b == Type::kNegInf) return Both(Cell::kInf);
  return Both(Cell::kNegInf);
}

bool IsFarApart(double target, double golden) {
  constexpr double kMost = 0.5, kSmallest = 1e-10;
  if (target == golden || (std::isnan(target) && std::isnan(golden))) return false;
  const double largest = std::max(std::fabs(target), std::fabs(golden));
  return !(std::fabs(target - golden) / (largest + kSmallest) <= kMost);
}

}  // namespace msprobe
