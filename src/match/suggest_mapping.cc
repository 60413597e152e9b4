#include "match/suggest_mapping.h"

#include <algorithm>
#include <array>
#include <map>
#include <unordered_set>

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
  // "0.module" is no number.
  const bool digit = !text.empty() && text[0] >= '0' && text[0] <= '9';
  const bool word =
      !text.empty() && (text[0] == '_' || (text[0] >= 'A' && text[0] <= 'Z') || (text[0] >= 'a' && text[0] <= 'z') ||
                        (digit && text.find_first_of("gijklmpqrstuvwyz") != std::string_view::npos));
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
    for (const JoinedLayers& layers : d_.modules.joined) ConsiderJoined(layers);
    for (uint32_t m = 1; m < t_.modules().size(); ++m) {
      out->modules += d_.modules.golden_of[m] != kNoModule && !t_.modules()[m].calls.empty();
      Consider(m, d_.modules.golden_of[m]);
    }
    // From the outside in, as the model is.
    std::map<std::string_view, size_t> first{{kTop, 0}};
    for (uint32_t m = 1; m < t_.modules().size(); ++m) first.emplace(t_.modules()[m].type, m);
    const auto place = [&](const std::string& type) {
      const auto it = first.find(type);
      return it == first.end() ? SIZE_MAX : it->second;
    };
    std::stable_sort(order_.begin(), order_.end(), [&](const auto& a, const auto& b) { return place(a) < place(b); });
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
  void Consider(uint32_t m, uint32_t g) {
    if (g == kNoModule) return;
    const uint32_t above = t_.modules()[m].parent;
    const bool in_place = d_.modules.golden_of[above] == g_.modules()[g].parent;
    if (in_place && t_.modules()[m].name == g_.modules()[g].name) return;
    std::string said;
    for (uint32_t owner = above;; owner = t_.modules()[owner].parent) {
      for (; owner != 0; owner = t_.modules()[owner].parent) {
        const uint32_t partner = d_.modules.golden_of[owner];
        if (partner != kNoModule && !t_.modules()[owner].type.empty() && partner != g && g_.IsIn(g, partner)) break;
      }
      const std::string type(owner == 0 ? kTop : t_.modules()[owner].type);
      const std::string from = t_.PathBelow(m, owner), to = g_.PathBelow(g, d_.modules.golden_of[owner]);
      if (from.empty() || to.empty()) return;
      // Where one class stands for different things, the class around it tells them apart, but for the layers of a
      // list.
      if (!said.empty() && HasNumber(from)) break;
      if (!rules_.count(type)) order_.push_back(type);
      const auto [it, fresh] = rules_[type].emplace(from, to);
      if (fresh || it->second == to) return;
      if (said.empty()) said = type + ": {" + from + ": " + it->second + "} says otherwise";
      if (owner == 0) break;
    }
    out_->left_out.push_back(t_.PathOf(m) + " is " + g_.PathOf(g) + ", but " + said);
  }

  static bool HasNumber(std::string_view path) {
    for (const std::string_view part : Split(path, '.')) {
      if (IsDigits(part)) return true;
    }
    return false;
  }

  /// One line stands for a fused layer of two parts: the last of them, as templates have it. More parts are found
  /// without one.
  void ConsiderJoined(const JoinedLayers& layers) {
    const bool several = layers.targets.size() > 1;
    const std::vector<uint32_t>& parts = several ? layers.targets : layers.goldens;
    const Structure &side = several ? t_ : g_, &other = several ? g_ : t_;
    std::string text;
    for (const uint32_t m : parts) text += (text.empty() ? "" : " and ") + std::string(side.modules()[m].name);
    const uint32_t whole = several ? layers.goldens[0] : layers.targets[0];
    text += " together are " + std::string(other.modules()[whole].name);
    if (std::ranges::find(out_->joined, text) == out_->joined.end()) out_->joined.push_back(std::move(text));
    if (parts.size() == 2) Consider(layers.targets.back(), layers.goldens.back());
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
  if (target.implementations()) {
    // Compare knows both models by their structure, with a mapping or without.
    std::unordered_set<uint32_t> joined;
    for (const JoinedLayers& layers : diff.modules.joined) joined.insert(layers.targets.begin(), layers.targets.end());
    out.matched_with = 0;
    for (uint32_t m = 0; m < target.modules().size(); ++m) {
      if (diff.modules.golden_of[m] != kNoModule || joined.count(m))
        out.matched_with += target.modules()[m].calls.size();
    }
    out.matched_without = out.matched_with;
    return out;
  }
  out.matched_with = out.rules.empty() ? out.matched_without : MatchLayers(target_side, golden_side, out.rules).matched;
  return out;
}

std::string SuggestedMappingYaml(const SuggestedMapping& mapping, std::string_view target, std::string_view golden) {
  std::string out = "# Which module of " + OneLine(target) + "\n# is which of " + OneLine(golden) +
                    ", by class, contents, parameters and order. Check each line, then\n" +
                    "# give this file as -lm to msprobe compare or graph_visualize.\n";
  out += "# Calls of the target with a partner: " + std::to_string(mapping.matched_with) + " of " +
         std::to_string(mapping.calls) + ", without these lines " + std::to_string(mapping.matched_without) + ".\n";
  for (const std::string& line : mapping.joined) out += "# " + OneLine(line) + ".\n";
  for (const std::string& line : mapping.left_out) out += "# left out: " + OneLine(line) + "\n";
  if (mapping.rules.empty()) {
    return out + (mapping.modules > 0
                      ? "# Every module that both runs have has the same name in them.\n{}\n"
                      : "# No module of one run was recognised in the other: write the lines yourself.\n{}\n");
  }
  for (const LayerRule& rule : mapping.rules) {
    out += YamlText(rule.type) + ":\n";
    for (const auto& [from, to] : rule.children) out += "  " + YamlText(from) + ": " + YamlText(to) + "\n";
  }
  return out;
}

}  // namespace msprobe
