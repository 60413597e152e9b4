// Questions that look for nodes by name and by what is wrong with them.
#include <algorithm>
#include <utility>

#include "view/held.h"
#include "view/viewer.h"

namespace msprobe::view {
namespace {

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; }

// The levels of a node, as the bits of a filter.
unsigned BitsOf(bool compared, const Tree& tree, uint32_t node) {
  static constexpr NodeFilter kOverflows[] = {NodeFilter::kAny, NodeFilter::kMedium, NodeFilter::kHigh,
                                              NodeFilter::kCritical};
  static_assert(static_cast<int>(Overflow::kNone) == 0 && static_cast<int>(Overflow::kCritical) == 3);
  const bool unmatched = compared && !tree.IsMatched(node);
  auto bits = static_cast<unsigned>(kOverflows[static_cast<uint8_t>(tree.OverflowAt(node))]);
  if (unmatched) bits |= static_cast<unsigned>(NodeFilter::kUnmatched);
  switch (tree.LevelOf(node)) {
    case Level::kPass: return bits | static_cast<unsigned>(NodeFilter::kPass);
    case Level::kWarning: return bits | static_cast<unsigned>(NodeFilter::kWarning);
    case Level::kError: return bits | static_cast<unsigned>(NodeFilter::kError);
    case Level::kNone: return unmatched ? bits : bits | static_cast<unsigned>(NodeFilter::kNone);
  }
  return bits;
}

bool FilterKeeps(NodeFilter filter, bool compared, const Tree& tree, uint32_t node) {
  return filter == NodeFilter::kAny || (static_cast<unsigned>(filter) & BitsOf(compared, tree, node)) != 0;
}

std::string LowerCase(std::string_view text) {
  std::string out(text.size(), '\0');
  std::transform(text.begin(), text.end(), out.begin(), Lower);
  return out;
}

// Whether a query keeps a node. Names are looked through once, before all nodes.
class Sieve {
 public:
  Sieve(const Held& held, Side side, const SearchQuery& query)
      : compared_(held.graph->compared), tree_(held.tree(side)), query_(query) {
    if (!query.text.empty() && tree_.names()) named_ = tree_.names()->Containing(LowerCase(query.text));
  }
  bool Keeps(uint32_t i) const {
    if (!named_.empty() && !named_[tree_.NameNumber(i)]) return false;
    return FilterKeeps(query_.filter, compared_, tree_, i) && (!query_.leaves_only || tree_.IsLeaf(i));
  }

 private:
  const bool compared_;
  const Tree& tree_;
  const SearchQuery& query_;
  std::vector<uint8_t> named_;  // empty: any name will do
};

}  // namespace

std::optional<NodeFilter> ParseNodeFilter(std::string_view words) {
  static constexpr std::pair<std::string_view, NodeFilter> kWords[] = {
      {"pass", NodeFilter::kPass},           {"warning", NodeFilter::kWarning},   {"error", NodeFilter::kError},
      {"unmatched", NodeFilter::kUnmatched}, {"none", NodeFilter::kNone},         {"medium", NodeFilter::kMedium},
      {"high", NodeFilter::kHigh},           {"critical", NodeFilter::kCritical}, {"overflow", NodeFilter::kOverflow}};
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

StatusOr<SearchHits> Viewer::Search(const GraphKey& key, Side side, const SearchQuery& query) {
  MSP_ASSIGN_OR_RETURN(const Held held, cache_->Hold(key));
  MSP_ASSIGN_OR_RETURN([[maybe_unused]] const uint32_t root, held.Find(key, side, ""));
  const Tree& tree = held.tree(side);
  const Sieve sieve(held, side, query);
  SearchHits out;
  for (uint32_t i = 0; i < tree.size(); ++i) {
    if (!sieve.Keeps(i)) continue;
    if (out.total++ >= query.offset && out.hits.size() < query.limit) out.hits.push_back(held.Summary(side, i));
  }
  return out;
}

StatusOr<SeekHit> Viewer::Seek(const GraphKey& key, Side side, const SearchQuery& query, std::string_view from,
                               bool forward) {
  MSP_ASSIGN_OR_RETURN(const Held held, cache_->Hold(key));
  const Tree& tree = held.tree(side);
  MSP_ASSIGN_OR_RETURN(const uint32_t start, held.Find(key, side, from));
  const Sieve sieve(held, side, query);
  const bool anywhere = from.empty();
  uint32_t before = kNoNode, after = kNoNode, first = kNoNode, last = kNoNode;
  uint64_t total = 0, until_start = 0, until_after = 0;
  for (uint32_t i = 0; i < tree.size(); ++i) {
    if (!sieve.Keeps(i)) continue;
    if (first == kNoNode) first = i;
    last = i;
    if (!anywhere && i < start) {
      before = i;
      until_start = total;
    } else if (after == kNoNode && (anywhere || i > start)) {
      after = i;
      until_after = total;
    }
    ++total;
  }
  SeekHit out;
  out.total = total;
  if (total == 0) return out;
  const uint32_t found = forward ? (after == kNoNode ? first : after) : (before == kNoNode ? last : before);
  out.node = held.Summary(side, found);
  out.index = forward ? (after == kNoNode ? 0 : until_after) : (before == kNoNode ? total - 1 : until_start);
  return out;
}

}  // namespace msprobe::view
