// Questions that look for nodes by name and by what is wrong with them.
#include <algorithm>
#include <array>
#include <utility>

#include "view/held.h"
#include "view/viewer.h"

namespace msprobe::view {
namespace {

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; }

// `needle` is in lower case.
bool ContainsNoCase(std::string_view text, std::string_view needle) {
  if (needle.empty()) return true;
  if (needle.size() > text.size()) return false;
  const size_t last = text.size() - needle.size();
  for (size_t i = 0; i <= last; ++i) {
    if (Lower(text[i]) != needle[0]) continue;
    size_t k = 1;
    while (k < needle.size() && Lower(text[i + k]) == needle[k]) ++k;
    if (k == needle.size()) return true;
  }
  return false;
}

bool Unmatched(const RankGraph& graph, const TreeNode& node) { return graph.compared && node.partner == kNoNode; }

bool Keeps(NodeFilter filter, const RankGraph& graph, const TreeNode& node) {
  const bool unmatched = Unmatched(graph, node);
  switch (filter) {
    case NodeFilter::kAny: return true;
    case NodeFilter::kPass: return node.level == Level::kPass;
    case NodeFilter::kWarning: return node.level == Level::kWarning;
    case NodeFilter::kError: return node.level == Level::kError;
    case NodeFilter::kUnmatched: return unmatched;
    case NodeFilter::kNone: return !unmatched && node.level == Level::kNone;
    case NodeFilter::kMedium: return node.overflow == Overflow::kMedium;
    case NodeFilter::kHigh: return node.overflow == Overflow::kHigh;
    case NodeFilter::kCritical: return node.overflow == Overflow::kCritical;
    case NodeFilter::kOverflow: return node.overflow != Overflow::kNone;
  }
  return false;
}

std::string LowerCase(std::string_view text) {
  std::string out(text.size(), '\0');
  std::transform(text.begin(), text.end(), out.begin(), Lower);
  return out;
}

}  // namespace

std::optional<NodeFilter> ParseNodeFilter(std::string_view word) {
  static constexpr std::pair<std::string_view, NodeFilter> kWords[] = {{"", NodeFilter::kAny},
                                                                       {"pass", NodeFilter::kPass},
                                                                       {"warning", NodeFilter::kWarning},
                                                                       {"error", NodeFilter::kError},
                                                                       {"unmatched", NodeFilter::kUnmatched},
                                                                       {"none", NodeFilter::kNone},
                                                                       {"medium", NodeFilter::kMedium},
                                                                       {"high", NodeFilter::kHigh},
                                                                       {"critical", NodeFilter::kCritical},
                                                                       {"overflow", NodeFilter::kOverflow}};
  for (const auto& [name, filter] : kWords) {
    if (word == name) return filter;
  }
  return std::nullopt;
}

StatusOr<SearchHits> Viewer::Search(const GraphKey& key, Side side, const SearchQuery& query) {
  MSP_ASSIGN_OR_RETURN(const Held held, cache_->Hold(key));
  MSP_ASSIGN_OR_RETURN([[maybe_unused]] const uint32_t root, held.Find(key, side, ""));
  const Tree& tree = held.tree(side);
  const std::string needle = LowerCase(query.text);
  SearchHits out;
  for (uint32_t i = 0; i < tree.size(); ++i) {
    if (!Keeps(query.filter, *held.graph, tree[i]) || (query.leaves_only && tree[i].children != 0)) continue;
    if (!ContainsNoCase(tree.Name(i), needle)) continue;
    if (out.total++ >= query.offset && out.hits.size() < query.limit) out.hits.push_back(held.Summary(side, i));
  }
  return out;
}

StatusOr<SeekHit> Viewer::Seek(const GraphKey& key, Side side, const SearchQuery& query, std::string_view from,
                               bool forward) {
  MSP_ASSIGN_OR_RETURN(const Held held, cache_->Hold(key));
  const Tree& tree = held.tree(side);
  MSP_ASSIGN_OR_RETURN(const uint32_t start, held.Find(key, side, from));
  const std::string needle = LowerCase(query.text);
  const bool anywhere = from.empty();
  uint32_t before = kNoNode, after = kNoNode, first = kNoNode, last = kNoNode;
  uint64_t total = 0, until_start = 0, until_after = 0;
  for (uint32_t i = 0; i < tree.size(); ++i) {
    if (!Keeps(query.filter, *held.graph, tree[i]) || (query.leaves_only && tree[i].children != 0)) continue;
    if (!ContainsNoCase(tree.Name(i), needle)) continue;
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
