#include "compare/stat_value.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "base/text.h"

namespace msprobe {
namespace {

bool EqualsNoCase(std::string_view s, std::string_view lower) {
  if (s.size() != lower.size()) return false;
  for (size_t i = 0; i < s.size(); ++i) {
    const char c = s[i] >= 'A' && s[i] <= 'Z' ? static_cast<char>(s[i] + 32) : s[i];
    if (c != lower[i]) return false;
  }
  return true;
}

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

Type TypeOf(const StatValue& v, double* number) {
  if (v.IsNumber()) {
    *number = v.AsDouble();
    return TypeOfDouble(*number);
  }
  if (v.kind == StatValue::Kind::kBool) return Type::kOther;
  const std::string_view s = v.text;
  if (s == "None") return Type::kOther;  // by far the most frequent text
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
      case Kind::kInt: return a.i == b.i;
      case Kind::kUInt: return a.u == b.u;
      case Kind::kBool: return a.flag == b.flag;
      case Kind::kText: return a.text == b.text;
      case Kind::kDouble:
        return (a.d == b.d && std::signbit(a.d) == std::signbit(b.d)) || (std::isnan(a.d) && std::isnan(b.d));
    }
  }
  std::string x, y;
  a.AppendText(&x);
  b.AppendText(&y);
  return x == y;
}

/// Integers are subtracted exactly: as doubles, neighbours above 2^53 would look equal.
double Subtract(const StatValue& a, const StatValue& b, double x, double y) {
  using Kind = StatValue::Kind;
  const auto whole = [](const StatValue& v) { return v.kind == Kind::kInt || v.kind == Kind::kUInt; };
  if (!whole(a) || !whole(b)) return x - y;
  const auto wide = [](const StatValue& v) {
    return v.kind == Kind::kInt ? static_cast<__int128>(v.i) : static_cast<__int128>(v.u);
  };
  return static_cast<double>(wide(a) - wide(b));
}

StatDiff Both(StatDiff::Cell cell) {
  StatDiff out;
  out.diff_cell = out.rel_cell = cell;
  return out;
}

}  // namespace

void StatValue::SetText(std::string_view s) {
  kind = Kind::kText;
  text.assign(s);
}

void StatValue::Set(const JsonValue& v) {
  if (v.IsInt64()) {
    kind = Kind::kInt;
    i = v.GetInt64();
  } else if (v.IsUint64()) {
    kind = Kind::kUInt;
    u = v.GetUint64();
  } else if (v.IsNumber()) {
    kind = Kind::kDouble;
    d = v.GetDouble();
  } else if (v.IsBool()) {
    kind = Kind::kBool;
    flag = v.GetBool();
  } else if (v.IsString()) {
    SetText(Text(v));
  } else if (v.IsNull()) {
    SetText("None");
  } else {
    kind = Kind::kText;
    text.clear();
    AppendPyValue(&text, v);
  }
}

void StatValue::SetField(const JsonValue* v) {
  if (!v) {
    SetText("None");
  } else if (v->IsBool()) {
    SetText(v->GetBool() ? "True" : "False");
  } else {
    Set(*v);
  }
}

double StatValue::AsDouble() const {
  if (kind == Kind::kInt) return static_cast<double>(i);
  if (kind == Kind::kUInt) return static_cast<double>(u);
  return d;
}

bool StatValue::IsNanOrInf() const {
  if (kind == Kind::kDouble) return !std::isfinite(d);
  return kind == Kind::kText && (EqualsNoCase(text, "nan") || EqualsNoCase(text, "inf") || EqualsNoCase(text, "-inf"));
}

void StatValue::AppendText(std::string* out) const {
  switch (kind) {
    case Kind::kInt: return AppendInt(*out, i);
    case Kind::kUInt: *out += std::to_string(u); return;
    case Kind::kBool: *out += flag ? "True" : "False"; return;
    case Kind::kDouble:
      if (std::isnan(d)) {
        *out += "Nan";
      } else {
        AppendPyRepr(*out, d);
      }
      return;
    case Kind::kText: *out += EqualsNoCase(text, "nan") ? std::string_view("Nan") : std::string_view(text); return;
  }
}

void AppendPyValue(std::string* out, const JsonValue& v) {
  const char* separator = "";
  if (v.IsArray()) {
    *out += '[';
    for (const JsonValue& element : v.GetArray()) {
      *out += separator;
      element.IsString() ? AppendPyStrRepr(*out, Text(element)) : AppendPyValue(out, element);
      separator = ", ";
    }
    *out += ']';
  } else if (v.IsObject()) {
    *out += '{';
    for (const auto& member : v.GetObject()) {
      *out += separator;
      AppendPyStrRepr(*out, Text(member.name));
      *out += ": ";
      member.value.IsString() ? AppendPyStrRepr(*out, Text(member.value)) : AppendPyValue(out, member.value);
      separator = ", ";
    }
    *out += '}';
  } else if (v.IsString()) {
    *out += Text(v);
  } else if (v.IsBool()) {
    *out += v.GetBool() ? "True" : "False";
  } else if (v.IsNull()) {
    *out += "None";
  } else if (v.IsInt64()) {
    AppendInt(*out, v.GetInt64());
  } else if (v.IsUint64()) {
    *out += std::to_string(v.GetUint64());
  } else {
    AppendPyRepr(*out, v.GetDouble());
  }
}

void StatDiff::AppendDiff(std::string* out) const {
  switch (diff_cell) {
    case Cell::kZero: *out += '0'; return;
    case Cell::kNumber: return AppendPyRepr(*out, diff);
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

StatDiff DiffStats(const StatValue& target, const StatValue& golden) {
  using Cell = StatDiff::Cell;
  if (SameText(target, golden)) return Both(Cell::kZero);
  double x = 0, y = 0;
  const Type a = TypeOf(target, &x), b = TypeOf(golden, &y);
  if (a == Type::kNum && b == Type::kNum) {
    StatDiff out;
    out.diff_cell = Cell::kNumber;
    out.diff = Subtract(target, golden, x, y);
    out.rel_cell = y == 0 ? Cell::kInf : Cell::kNumber;
    if (y != 0) out.rel = std::fabs(out.diff / y * 100);
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

}  // namespace msprobe
