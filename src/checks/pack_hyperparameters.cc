#include <algorithm>
#include <array>
#include <optional>

#include "base/text.h"
#include "checks/pack_compare.h"
#include "checks/sequence_ratio.h"

namespace msprobe {
namespace {

constexpr double kAlike = 0.8;
constexpr size_t kMostForSimilarity = 2000;  // names of a side; beyond, only equal names and aliases match

/// Names of one thing, the standard one first.
constexpr std::array<std::array<std::string_view, 4>, 8> kAliases = {{
    {"learning_rate", "lr", "learningrate", ""},
    {"batch_size", "batch", "bs", "batch_size_per_gpu"},
    {"epochs", "num_epochs", "max_epochs", "epoch"},
    {"weight_decay", "wd", "weightdecay", ""},
    {"dropout_rate", "dropout", "drop_rate", ""},
    {"compute_dtype", "bf16", "fp32", ""},
    {"residual_dtype", "fp32_residual_connection", "", ""},
    {"softmax_compute_dtype", "attention_softmax_in_fp32", "", ""},
}};

struct Param {
  const ConfigMember* member;
  std::string plain, last;  // "_" for "-"; behind the last dot
  bool taken = false;
};

std::vector<Param> ParamsOf(const HyperParameters& all) {
  std::vector<Param> out;
  for (const ConfigMember& member : all) {
    Param param{&member, member.first, {}};
    std::replace(param.plain.begin(), param.plain.end(), '-', '_');
    const size_t dot = param.plain.rfind('.');
    param.last = dot == std::string::npos ? param.plain : param.plain.substr(dot + 1);
    out.push_back(std::move(param));
  }
  return out;
}

struct ParamMatch {
  Param* param = nullptr;
  std::string how;
};

/// The one that is free and satisfies; null if there is none or, with `only_one`, if there are several.
template <typename Test>
Param* FindFree(std::vector<Param>* params, bool only_one, Test test) {
  Param* found = nullptr;
  for (Param& param : *params) {
    if (param.taken || !test(param)) continue;
    if (!only_one) return &param;
    if (found) return nullptr;
    found = &param;
  }
  return found;
}

ParamMatch MatchByName(const Param& bench, std::vector<Param>* cmp) {
  if (Param* same = FindFree(cmp, false, [&](const Param& p) { return p.plain == bench.plain; })) {
    return {same, "pure name"};
  }
  if (Param* same = FindFree(cmp, true, [&](const Param& p) { return p.last == bench.last; })) {
    return {same, "pure name"};
  }
  for (const auto& group : kAliases) {
    if (std::find(group.begin(), group.end(), bench.last) == group.end()) continue;
    for (const std::string_view name : group) {
      if (name.empty()) continue;
      if (Param* alias = FindFree(cmp, true, [&](const Param& p) { return p.last == name; })) return {alias, "mapping"};
    }
  }
  return {};
}

std::string Lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; });
  return text;
}

ParamMatch MatchBySimilarity(const Param& bench, std::vector<Param>* cmp) {
  if (cmp->size() > kMostForSimilarity) return {};
  ParamMatch best;
  double most = kAlike;
  for (Param& param : *cmp) {
    if (param.taken) continue;
    const double ratio = SequenceRatio(Lower(bench.last), Lower(param.last));
    if (ratio <= most) continue;
    most = ratio;
    best = {&param, "similarity:" + PyRepr(ratio)};
  }
  return best;
}

/// Texts of one number are the same: 1e-4 and 0.0001.
bool SameValue(const ConfigValue& a, const ConfigValue& b) {
  if (a == b || a.Shown() == b.Shown()) return true;
  const std::optional<double> x = a.AsNumber(), y = b.AsNumber();
  return x && y && *x == *y;
}

using ParamRow = std::array<std::string, 7>;

void CompareFile(const std::string& file, const HyperParameters& bench, const HyperParameters& cmp,
                 std::vector<ParamRow>* rows) {
  std::vector<Param> left = ParamsOf(bench), right = ParamsOf(cmp);
  std::vector<ParamMatch> matches(left.size());
  for (size_t i = 0; i < left.size(); ++i) {
    matches[i] = MatchByName(left[i], &right);
    if (matches[i].param) matches[i].param->taken = true;
  }
  for (size_t i = 0; i < left.size(); ++i) {
    if (matches[i].param) continue;
    matches[i] = MatchBySimilarity(left[i], &right);
    if (matches[i].param) matches[i].param->taken = true;
  }
  for (size_t i = 0; i < left.size(); ++i) {
    const ConfigMember& mine = *left[i].member;
    if (!matches[i].param) {
      rows->push_back({file, mine.first, "Only in benchmark", mine.second.Shown(), "", "", "warning"});
      continue;
    }
    const ConfigMember& theirs = *matches[i].param->member;
    if (SameValue(mine.second, theirs.second)) continue;
    rows->push_back(
        {file, mine.first, theirs.first, mine.second.Shown(), theirs.second.Shown(), matches[i].how, "error"});
  }
  for (const Param& param : right) {
    if (param.taken) continue;
    rows->push_back({file, "Only in comparison", param.member->first, "", param.member->second.Shown(), "", "warning"});
  }
}

}  // namespace

PackPart CompareHyperParameters(const std::map<std::string, HyperParameters>& bench,
                                const std::map<std::string, HyperParameters>& cmp) {
  PackPart out{{"hyperparameters",
                {"file_name", "bench_para", "cmp_para", "bench_value", "cmp_value", "matched_with", "level"},
                {}}};
  std::vector<ParamRow> rows;
  for (const std::string file : {"hyperparameters_static.json", "hyperparameters_dynamic.json"}) {
    const auto a = bench.find(file), b = cmp.find(file);
    if (a != bench.end() && b != cmp.end()) CompareFile(file, a->second, b->second, &rows);
  }
  std::stable_sort(rows.begin(), rows.end());
  for (const ParamRow& row : rows) {
    out.verdict = std::max(out.verdict, row[6] == "error" ? PackVerdict::kError : PackVerdict::kWarning);
    std::vector<SheetValue> cells;
    for (const std::string& text : row) cells.push_back(text.empty() ? SheetValue{} : SheetValue::Of(text));
    out.sheet.rows.push_back(std::move(cells));
  }
  return out;
}

}  // namespace msprobe
