#include "compare/first_difference/same_data.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/page_trim.h"
#include "base/text.h"
#include "compare/values/item_views.h"
#include "ops/op_name.h"

namespace msprobe {
namespace {

struct Data {
  size_t calls = 0;
  double elements = 0;
};

StatusOr<Data> DataOf(const DumpFile& dump, const NameParts& call, std::string_view suffix) {
  Data out;
  ItemViews items(dump, CompareMode::kStructure);
  for (size_t i = 0; i < dump.ops().size(); ++i) {
    if (i % kStepsBetweenTrims == 0) TrimMaps();
    const NameParts name = ParseOpName(dump.ops().NameAt(i));
    if (name.base != call.base || name.direction != call.direction) continue;
    MSP_RETURN_IF_ERROR(items.Read(i));
    for (const ItemView& item : items.items()) {
      if (item.suffix != suffix || !item.tensor) continue;
      ++out.calls;
      out.elements += ElementsOfShape(item.shape);
    }
  }
  return out;
}

}  // namespace

StatusOr<bool> IsSameDataInPieces(const DumpPair& pair, std::string_view name, std::string_view suffix) {
  const NameParts call = ParseOpName(name);
  if (call.direction != OpDirection::kForward) return false;
  MSP_ASSIGN_OR_RETURN(const Data target, DataOf(*pair.target, call, suffix));
  MSP_ASSIGN_OR_RETURN(const Data golden, DataOf(*pair.golden, call, suffix));
  return target.elements > 0 && target.elements == golden.elements && target.calls != golden.calls;
}

bool IsOfOneProcess(const DumpFile& dump) { return BaseName(DirName(dump.path())) == "rank"; }

namespace {

using Norms = std::map<std::string, double, std::less<>>;

/// Of the gradients of all parameters, by module and parameter.
StatusOr<Norms> NormsOfGradients(const DumpFile& dump) {
  Norms out;
  ItemViews items(dump, CompareMode::kStatistics);
  for (size_t i = 0; i < dump.ops().size(); ++i) {
    const NameParts name = ParseOpName(dump.ops().NameAt(i));
    if (name.direction != OpDirection::kParameterGrad) continue;
    MSP_RETURN_IF_ERROR(items.Read(i));
    for (const ItemView& item : items.items()) {
      const StatValue& norm = item.stats[kNorm];
      if (item.tensor && norm.IsNumber()) out[std::string(name.base) + item.suffix] = norm.AsDouble();
    }
  }
  return out;
}

}  // namespace

StatusOr<double> FactorOfGradients(const DumpPair& pair) {
  constexpr double kAlike = 0.02, kMost = 0.8;
  MSP_ASSIGN_OR_RETURN(const Norms target, NormsOfGradients(*pair.target));
  MSP_ASSIGN_OR_RETURN(const Norms golden, NormsOfGradients(*pair.golden));
  std::vector<double> ratios;
  for (const auto& [name, norm] : target) {
    const auto other = golden.find(name);
    if (other != golden.end() && other->second > 0 && norm > 0) ratios.push_back(norm / other->second);
  }
  if (ratios.empty()) return 0.0;
  std::ranges::sort(ratios);
  const double middle = ratios[ratios.size() / 2];
  const auto alike = std::ranges::count_if(ratios, [&](double r) { return std::fabs(r - middle) <= kAlike * middle; });
  return static_cast<double>(alike) >= kMost * static_cast<double>(ratios.size()) ? middle : 0.0;
}

}  // namespace msprobe
