#include "match/suggest_mapping.h"

#include <algorithm>
#include <array>
#include <map>

#include "base/text.h"
#include "match/layer_match.h"

namespace msprobe {
namespace {

constexpr std::string_view kTop = "TopLayer";

/// A text that YAML reads as that text.
std::string YamlText(std::string_view text) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
  };
  const bool word =
      !text.empty() && (text[0] == '_' || (text[0] >= 'A' && text[0] <= 'Z') || (text[0] >= 'a' && text[0] <= 'z'));
  constexpr std::array<std::string_view, 10> kSpecial{"y",   "n",    "yes",   "no",   "on",
                                                      "off", "true", "false", "null", "none"};
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  if (word && std::all_of(text.begin(), text.end(), plain) &&
      std::find(kSpecial.begin(), kSpecial.end(), lower) == kSpecial.end()) {
    return std::string(text);
  }
  std::string out;
  AppendJsonString(out, text, false);
  return out;
}

class Suggesting {
 public:
  Suggesting(const Structure& target, const Structure& golden, const StructureDiff& diff)
      : t_(target), g_(golden), d_(diff) {}

  void Run(const std::vector<LayerRule>& given, SuggestedMapping* out) {
    out_ = out;
    for (const LayerRule& rule : given) {
      for (const auto& [from, to] : rule.children) rules_[rule.type].emplace(from, to);
      order_.push_back(rule.type);
    }
    for (uint32_t m = 1; m < t_.modules().size(); ++m) Consider(m);
    std::stable_sort(order_.begin(), order_.end(), [](const auto& a, const auto& b) { return a == kTop && b != kTop; });
    for (const std::string& type : order_) {
      const auto it = rules_.find(type);
      if (it == rules_.end()) continue;
      LayerRule rule{type, {}};
      rule.children.assign(it->second.begin(), it->second.end());
      out->rules.push_back(std::move(rule));
      rules_.erase(it);
    }
  }

 private:
  /// A rule belongs to the class of the nearest module above that has one, and whose partner contains this one's.
  void Consider(uint32_t m) {
    const uint32_t g = d_.modules.golden_of[m];
    if (g == kNoModule) return;
    const uint32_t above = t_.modules()[m].parent;
    const bool in_place = d_.modules.golden_of[above] == g_.modules()[g].parent;
    if (in_place && t_.modules()[m].name == g_.modules()[g].name) return;
    uint32_t owner = above;
    for (; owner != 0; owner = t_.modules()[owner].parent) {
      const uint32_t partner = d_.modules.golden_of[owner];
      if (partner != kNoModule && !t_.modules()[owner].type.empty() && partner != g && g_.IsIn(g, partner)) break;
    }
    const std::string type(owner == 0 ? kTop : t_.modules()[owner].type);
    const std::string from = t_.PathBelow(m, owner), to = g_.PathBelow(g, d_.modules.golden_of[owner]);
    if (from.empty() || to.empty()) return;
    if (!rules_.count(type)) order_.push_back(type);
    const auto [it, fresh] = rules_[type].emplace(from, to);
    if (fresh || it->second == to) return;
    out_->left_out.push_back(t_.PathOf(m) + " is " + g_.PathOf(g) + ", but " + type + ": {" + from + ": " + it->second +
                             "} says otherwise");
  }

  const Structure &t_, &g_;
  const StructureDiff& d_;
  std::map<std::string, std::map<std::string, std::string>> rules_;
  std::vector<std::string> order_;
  SuggestedMapping* out_ = nullptr;
};

}  // namespace

SuggestedMapping SuggestMapping(const Structure& target, const Structure& golden, const StructureDiff& diff,
                                const std::vector<LayerRule>& given) {
  SuggestedMapping out;
  Suggesting(target, golden, diff).Run(given, &out);
  const LayerSide target_side = target.Side(), golden_side = golden.Side();
  out.calls = target.calls().size();
  out.matched_without = MatchLayers(target_side, golden_side, given).matched;
  out.matched_with = out.rules.empty() ? out.matched_without : MatchLayers(target_side, golden_side, out.rules).matched;
  return out;
}

std::string SuggestedMappingYaml(const SuggestedMapping& mapping, std::string_view target, std::string_view golden) {
  std::string out = "# Which module of " + OneLine(target) + "\n# is which of " + OneLine(golden) +
                    ", by class, contents, parameters and order. Check each line, then\n" +
                    "# give this file as -lm to msprobe compare or graph_visualize.\n";
  out += "# Calls of the target with a partner: " + std::to_string(mapping.matched_with) + " of " +
         std::to_string(mapping.calls) + ", without these lines " + std::to_string(mapping.matched_without) + ".\n";
  for (const std::string& line : mapping.left_out) out += "# left out: " + OneLine(line) + "\n";
  if (mapping.rules.empty()) return out + "# Every module has the same name in both runs.\n{}\n";
  for (const LayerRule& rule : mapping.rules) {
    out += YamlText(rule.type) + ":\n";
    for (const auto& [from, to] : rule.children) out += "  " + YamlText(from) + ": " + YamlText(to) + "\n";
  }
  return out;
}

}  // namespace msprobe
