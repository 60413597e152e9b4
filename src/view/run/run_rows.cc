#include "view/run/run_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "base/text.h"

namespace msprobe::view {
namespace {

char LowerCase(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

bool HasPart(std::string_view name, std::string_view part) {
  return std::search(name.begin(), name.end(), part.begin(), part.end(),
                     [](char a, char b) { return LowerCase(a) == LowerCase(b); }) != name.end();
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

size_t DigitsAt(std::string_view text, size_t at) {
  size_t end = at;
  while (end < text.size() && IsDigit(text[end])) ++end;
  return end;
}

bool NaturallyLess(std::string_view a, std::string_view b) {
  size_t i = 0, k = 0;
  while (i < a.size() && k < b.size()) {
    if (!IsDigit(a[i]) || !IsDigit(b[k])) {
      if (a[i] != b[k]) return a[i] < b[k];
      ++i;
      ++k;
      continue;
    }
    const size_t end_a = DigitsAt(a, i), end_b = DigitsAt(b, k);
    while (i < end_a && a[i] == '0') ++i;
    while (k < end_b && b[k] == '0') ++k;
    if (end_a - i != end_b - k) return end_a - i < end_b - k;
    if (const int order = a.substr(i, end_a - i).compare(b.substr(k, end_b - k)); order != 0) return order < 0;
    i = end_a;
    k = end_b;
  }
  return a.size() - i < b.size() - k;
}

}  // namespace

std::string SeriesLabel(std::string_view name, int64_t vpp_stage, int64_t micro_step) {
  std::string label(name);
  if (vpp_stage != 0) label += fmt::format(" vpp {}", vpp_stage);
  if (micro_step >= 0) label += fmt::format(" #{}", micro_step);
  return label;
}

std::string_view LayerOf(std::string_view name) {
  for (size_t at = 0; at < name.size();) {
    const size_t end = std::min(name.find('.', at), name.size());
    if (IsDigits(name.substr(at, end - at))) return name.substr(0, end);
    at = end + 1;
  }
  return name;
}

std::vector<RunRow> MakeRunRows(const RunMetric& metric, RunFold fold, std::string_view text) {
  std::vector<RunRow> rows;
  std::unordered_map<std::string, size_t> known;
  for (size_t i = 0; i < metric.series.size(); ++i) {
    const RunSeries& series = metric.series[i];
    if (!text.empty() && !HasPart(series.name, text)) continue;
    std::string label = fold == RunFold::kLayer ? std::string(LayerOf(series.name))
                                                : SeriesLabel(series.name, series.vpp_stage, series.micro_step);
    const auto [found, fresh] = known.emplace(label, rows.size());
    if (fresh) rows.push_back({std::move(label), {}});
    rows[found->second].members.push_back(static_cast<uint32_t>(i));
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const RunRow& a, const RunRow& b) { return NaturallyLess(a.label, b.label); });
  return rows;
}

}  // namespace msprobe::view
