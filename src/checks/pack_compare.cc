#include "checks/pack_compare.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>
#include <unordered_map>

#include "base/text.h"

namespace msprobe {
namespace {

/// Packages whose versions change what a training computes.
constexpr std::array<std::string_view, 8> kPackages = {"transformers", "deepspeed", "megatron",  "numpy",
                                                       "datasets",     "peft",      "mindspore", "torch"};

/// As pip treats names.
std::string PipName(std::string_view name) {
  std::string out;
  for (const char c : name) out += c == '_' || c == '.' ? '-' : c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return out;
}

PackPart ComparePackages(const Pack& bench, const Pack& cmp) {
  PackPart out{{"pip", {"package", "bench version", "cmp version", "level"}, {}}};
  const auto version = [](const Pack& pack, std::string_view name) -> std::optional<std::string> {
    std::optional<std::string> found;
    for (const auto& [package, text] : pack.packages) {
      const std::string plain = PipName(package);
      // Megatron-LM is installed as megatron-core.
      if (plain == name || (name == "megatron" && plain == "megatron-core")) found = text;
    }
    return found;
  };
  for (const std::string_view name : kPackages) {
    const std::optional<std::string> a = version(bench, name), b = version(cmp, name);
    if (a == b) continue;
    out.verdict = PackVerdict::kError;
    out.sheet.rows.push_back({SheetValue::Of(std::string(name)), SheetValue::Of(a.value_or("None")),
                              SheetValue::Of(b.value_or("None")), SheetValue::Of(std::string("error"))});
  }
  return out;
}

bool SameNumber(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

/// |a - b| in units of |a|; nothing of zero.
SheetValue RelativeDifference(double bench, double cmp) {
  if (SameNumber(bench, cmp)) return bench == 0 ? SheetValue{} : SheetValue::Of(0.0);
  return bench == 0 ? SheetValue{} : SheetValue::Of(std::fabs(bench - cmp) / std::fabs(bench));
}

class FeatureTable {
 public:
  FeatureTable(std::string name, std::string title, bool weights)
      : out_{{std::move(name),
              {"step", "rank", std::move(title), "equal", "max_relative_diff", "min_relative_diff",
               "mean_relative_diff", "norm_relative_diff"},
              {}}},
        weights_(weights) {}

  void Add(const StepRank& at, const NamedFeatures* bench, const NamedFeatures* cmp) {
    const std::string& name = bench ? bench->name : cmp->name;
    std::vector<SheetValue> row = {SheetValue::Of(static_cast<double>(at.step)),
                                   SheetValue::Of(static_cast<double>(at.rank)), SheetValue::Of(name)};
    if (!bench || !cmp || bench->is_tensor != cmp->is_tensor) {
      out_.verdict = PackVerdict::kError;
      const char* side = !bench ? "only cmp have" : !cmp ? "only bench have" : nullptr;
      row.push_back(weights_ && side ? SheetValue::Of(std::string(side)) : SheetValue::Of(false));
      row.resize(8);
    } else if (!bench->is_tensor) {
      return;
    } else {
      const TensorFeatures &a = bench->features, &b = cmp->features;
      const bool equal = SameNumber(a.max, b.max) && SameNumber(a.min, b.min) && SameNumber(a.mean, b.mean) &&
                         SameNumber(a.norm, b.norm);
      if (!equal) out_.verdict = PackVerdict::kError;
      row.push_back(SheetValue::Of(equal));
      row.push_back(RelativeDifference(a.max, b.max));
      row.push_back(RelativeDifference(a.min, b.min));
      row.push_back(RelativeDifference(a.mean, b.mean));
      row.push_back(RelativeDifference(a.norm, b.norm));
    }
    out_.sheet.rows.push_back(std::move(row));
  }

  PackPart Take() { return std::move(out_); }

 private:
  PackPart out_;
  bool weights_;
};

PackPart CompareFeatures(const std::map<StepRank, std::vector<NamedFeatures>>& bench,
                         const std::map<StepRank, std::vector<NamedFeatures>>& cmp, FeatureTable table) {
  static const std::vector<NamedFeatures> kNothing;
  std::set<StepRank> places;
  for (const auto& [at, features] : bench) places.insert(at);
  for (const auto& [at, features] : cmp) places.insert(at);
  for (const StepRank& at : places) {
    const auto left = bench.find(at), right = cmp.find(at);
    const std::vector<NamedFeatures>&a = left == bench.end() ? kNothing : left->second,
          &b = right == cmp.end() ? kNothing : right->second;
    std::unordered_map<std::string_view, const NamedFeatures*> there, here;
    for (const NamedFeatures& item : b) there[item.name] = &item;
    for (const NamedFeatures& item : a) {
      here[item.name] = &item;
      const auto found = there.find(item.name);
      table.Add(at, &item, found == there.end() ? nullptr : found->second);
    }
    for (const NamedFeatures& item : b) {
      if (!here.count(item.name)) table.Add(at, nullptr, &item);
    }
  }
  return table.Take();
}

}  // namespace

std::string_view NameOf(PackVerdict verdict) {
  return verdict == PackVerdict::kPass ? "pass" : verdict == PackVerdict::kWarning ? "warning" : "error";
}

std::vector<PackPart> ComparePacks(const Pack& bench, const Pack& cmp) {
  std::vector<PackPart> out;
  if (bench.has_environment && cmp.has_environment)
    out.push_back(CompareEnvironment(bench.environment, cmp.environment));
  if (bench.has_packages && cmp.has_packages) out.push_back(ComparePackages(bench, cmp));
  if (bench.has_dataset && cmp.has_dataset) {
    out.push_back(CompareFeatures(bench.dataset, cmp.dataset, FeatureTable("dataset", "tag", false)));
  }
  if (bench.has_weights && cmp.has_weights) {
    out.push_back(CompareFeatures(bench.weights, cmp.weights, FeatureTable("weights", "weight_name", true)));
  }
  if (bench.has_hyperparameters && cmp.has_hyperparameters) {
    out.push_back(CompareHyperParameters(bench.hyperparameters, cmp.hyperparameters));
  }
  if (bench.has_random && cmp.has_random) out.push_back(CompareRandomCalls(bench, cmp));
  return out;
}

Sheet SummarySheet(const std::vector<PackPart>& parts, bool truths) {
  Sheet out{"summary", {"filename", "pass_check"}, {}};
  for (const PackPart& part : parts) {
    const Cell::Color color = part.verdict == PackVerdict::kError     ? Cell::Color::kRed
                              : part.verdict == PackVerdict::kWarning ? Cell::Color::kYellow
                                                                      : Cell::Color::kNone;
    SheetValue verdict = SheetValue::Of(std::string(NameOf(part.verdict)));
    if (truths) verdict = SheetValue::Of(part.verdict != PackVerdict::kError);
    verdict.color = color;
    out.rows.push_back({SheetValue::Of(part.sheet.name), std::move(verdict)});
  }
  return out;
}

}  // namespace msprobe
