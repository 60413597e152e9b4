#include "view/search/hit_order.h"

#include <cmath>
#include <limits>
#include <unordered_map>

#include "base/text.h"

namespace msprobe::view {
namespace {

/// "model.mlp" of "Module.model.mlp.MLP.backward.0".
std::string_view ModulePathOf(std::string_view name) {
  for (const std::string_view kind : {"Module.", "Cell."}) {
    if (!name.starts_with(kind)) continue;
    name.remove_prefix(kind.size());
    break;
  }
  std::string_view rest = name;
  const auto last = [&rest] {
    const size_t dot = rest.rfind('.');
    const std::string_view part = dot == std::string_view::npos ? std::string_view() : rest.substr(dot + 1);
    rest = rest.substr(0, dot == std::string_view::npos ? 0 : dot);
    return part;
  };
  std::string_view pass = last();
  if (IsDigits(pass)) pass = last();
  if ((pass != "forward" && pass != "backward") || last().empty()) return name;
  return rest;
}

// The number of the module that a node is or stands in, by the first run of each module; of what no module calls the
// number behind all others.
std::vector<double> ModuleNumbers(const Tree& tree) {
  std::unordered_map<std::string_view, uint32_t> numbers;
  constexpr double kUnknown = -1;
  std::vector<double> out(tree.size(), kUnknown);
  for (uint32_t i = 0; i < tree.size(); ++i) {
    if (tree.Type(i) != kModule) continue;
    out[i] = numbers.try_emplace(ModulePathOf(tree.Name(i)), static_cast<uint32_t>(numbers.size())).first->second;
  }
  const auto nowhere = static_cast<double>(numbers.size());
  const auto known = [&](uint32_t i) { return i == kNoNode || i == tree.root() || out[i] != kUnknown; };
  for (uint32_t i = 0; i < tree.size(); ++i) {
    uint32_t up = i;
    while (!known(up)) up = tree.Parent(up);
    const double number = up == kNoNode || (up == tree.root() && up != i) ? nowhere : out[up];
    for (uint32_t at = i; at != up; at = tree.Parent(at)) out[at] = number;
    if (out[i] == kUnknown) out[i] = nowhere;  // a root that is no module
  }
  return out;
}

}  // namespace

std::optional<HitSort> ParseHitSort(std::string_view word) {
  if (word.empty() || word == "execution") return HitSort::kExecution;
  if (word == "error") return HitSort::kError;
  if (word == "module") return HitSort::kModule;
  return std::nullopt;
}

HitOrder::HitOrder(const Tree& tree, HitSort sort, const std::vector<double>* errors) {
  if (sort == HitSort::kModule) keys_ = ModuleNumbers(tree);
  if (sort != HitSort::kError || errors == nullptr) return;
  keys_ = *errors;
  for (double& key : keys_) key = std::isnan(key) ? std::numeric_limits<double>::infinity() : -key;
}

}  // namespace msprobe::view
