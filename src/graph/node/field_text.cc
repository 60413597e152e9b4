#include "graph/node/field_text.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/text.h"

namespace msprobe {
namespace {

constexpr size_t kMaxDigits = 20;
constexpr size_t kPlaces = 6;

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

/// Differences of 64-bit integers need one bit more.
void AppendInteger(std::string& out, __int128 v) {
  if (v >= INT64_MIN && v <= INT64_MAX) return AppendInt(out, static_cast<int64_t>(v));
  std::string digits;
  for (__int128 rest = v < 0 ? -v : v; rest > 0; rest /= 10) {
    digits += static_cast<char>('0' + static_cast<int>(rest % 10));
  }
  if (v < 0) digits += '-';
  out.append(digits.rbegin(), digits.rend());
}

}  // namespace

std::string_view GraphTaskName(CompareMode mode) {
  static constexpr std::array<std::string_view, 4> kNames{"summary", "md5", "all", "structure"};
  return kNames[static_cast<size_t>(mode)];
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

std::string FieldText(const StatValue& v) {
  std::string out;
  if (v.kind == StatValue::Kind::kNull) return "null";
  v.AppendPyText(&out);
  const bool counts_as_text = v.IsText() || (v.kind == StatValue::Kind::kJson && v.flag);
  if (!counts_as_text || IsPlain(out)) return out;
  out = WithoutQuotes(out);
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

void AppendField(std::string& out, const StatValue& v) {
  using Kind = StatValue::Kind;
  switch (v.kind) {
    case Kind::kNull: out += "null"; return;
    case Kind::kText:
      if (IsPlain(v.text)) return AppendJsonBody(out, v.text);
      return AppendJsonBody(out, FieldText(v));
    case Kind::kJson: return AppendJsonBody(out, FieldText(v));
    default: v.AppendPyText(&out);
  }
}

void AppendDiffText(std::string& out, const StatDiff& d) {
  switch (d.diff_cell) {
    case StatDiff::Cell::kInteger: return AppendInteger(out, d.whole);
    case StatDiff::Cell::kInf: out += "inf\t"; return;
    case StatDiff::Cell::kNegInf: out += "-inf\t"; return;
    default: d.AppendDiff(&out);
  }
}

void AppendRelText(std::string& out, const StatDiff& d) {
  std::string text;
  d.AppendRel(&text);
  RoundDecimalText(&text);
  out += text;
}

}  // namespace msprobe
