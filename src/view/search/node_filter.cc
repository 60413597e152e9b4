#include "view/search/node_filter.h"

#include <algorithm>
#include <utility>

namespace msprobe::view {

unsigned LevelBits(bool compared, const Tree& tree, uint32_t node) {
  static constexpr NodeFilter kOverflows[] = {NodeFilter::kAny, NodeFilter::kMedium, NodeFilter::kHigh,
                                              NodeFilter::kCritical};
  static_assert(static_cast<int>(Overflow::kNone) == 0 && static_cast<int>(Overflow::kCritical) == 3);
  static constexpr NodeFilter kRulings[] = {NodeFilter::kUnjudged,  NodeFilter::kBitEqual,  NodeFilter::kRoundOff,
                                            NodeFilter::kRewritten, NodeFilter::kInherited, NodeFilter::kSuspicious,
                                            NodeFilter::kBug};
  static_assert(static_cast<int>(RulerVerdict::kNone) == 0 && static_cast<int>(RulerVerdict::kBug) == 6);
  if (tree.Type(node) == kCollection) return 0;
  const bool unmatched = compared && !tree.IsMatched(node);
  auto bits = static_cast<unsigned>(kOverflows[static_cast<uint8_t>(tree.OverflowAt(node))]);
  if (!unmatched) bits |= static_cast<unsigned>(kRulings[static_cast<uint8_t>(tree.RulingOf(node))]);
  if (unmatched) bits |= static_cast<unsigned>(NodeFilter::kUnmatched);
  switch (tree.LevelOf(node)) {
    case Verdict::kPass: return bits | static_cast<unsigned>(NodeFilter::kPass);
    case Verdict::kWarning: return bits | static_cast<unsigned>(NodeFilter::kWarning);
    case Verdict::kError: return bits | static_cast<unsigned>(NodeFilter::kError);
    case Verdict::kNone: return unmatched ? bits : bits | static_cast<unsigned>(NodeFilter::kNone);
  }
  return bits;
}

std::optional<NodeFilter> ParseNodeFilter(std::string_view words) {
  static constexpr std::pair<std::string_view, NodeFilter> kWords[] = {{"pass", NodeFilter::kPass},
                                                                       {"warning", NodeFilter::kWarning},
                                                                       {"error", NodeFilter::kError},
                                                                       {"unmatched", NodeFilter::kUnmatched},
                                                                       {"none", NodeFilter::kNone},
                                                                       {"medium", NodeFilter::kMedium},
                                                                       {"high", NodeFilter::kHigh},
                                                                       {"critical", NodeFilter::kCritical},
                                                                       {"overflow", NodeFilter::kOverflow},
                                                                       {"bug", NodeFilter::kBug},
                                                                       {"suspicious", NodeFilter::kSuspicious},
                                                                       {"inherited", NodeFilter::kInherited},
                                                                       {"round-off", NodeFilter::kRoundOff},
                                                                       {"rewritten", NodeFilter::kRewritten},
                                                                       {"bit-equal", NodeFilter::kBitEqual},
                                                                       {"unjudged", NodeFilter::kUnjudged}};
  if (words.empty()) return NodeFilter::kAny;
  unsigned filter = 0;
  for (bool more = true; more;) {
    const size_t comma = words.find(',');
    const std::string_view word = words.substr(0, comma);
    more = comma != std::string_view::npos;
    if (more) words.remove_prefix(comma + 1);
    const auto* known =
        std::find_if(std::begin(kWords), std::end(kWords), [&](const auto& w) { return w.first == word; });
    if (known == std::end(kWords)) return std::nullopt;
    filter |= static_cast<unsigned>(known->second);
  }
  return static_cast<NodeFilter>(filter);
}

}  // namespace msprobe::view
