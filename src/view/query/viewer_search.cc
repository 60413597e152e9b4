// Questions that look for nodes by name and by what is wrong with them.
#include "view/query/query_caches.h"
#include "view/query/viewer.h"
#include "view/search/search_terms.h"
#include "view/search/sieve.h"

namespace msprobe::view {
namespace {

Side SideOf(const SearchTerms& terms, Side shown) {
  switch (terms.side) {
    case SearchSide::kTarget: return Side::kTarget;
    case SearchSide::kGolden: return Side::kGolden;
    case SearchSide::kAsShown: return shown;
  }
  return shown;
}

std::string ModuleAround(const Tree& tree, uint32_t node) {
  if (tree.Type(node) == kModule) return "";
  for (uint32_t up = tree.Parent(node); up != kNoNode && up != tree.root(); up = tree.Parent(up)) {
    if (tree.Type(up) == kModule) return std::string(tree.Name(up));
  }
  return "";
}

}  // namespace

StatusOr<SearchHits> Viewer::Search(const GraphAddress& key, Side side, const SearchQuery& query) {
  MSP_ASSIGN_OR_RETURN(const SearchTerms terms, ParseSearchTerms(query.text));
  MSP_ASSIGN_OR_RETURN(const QueryContext held, cache_->Hold(key));
  SearchHits out;
  out.side = SideOf(terms, side);
  MSP_ASSIGN_OR_RETURN([[maybe_unused]] const uint32_t root, held.Find(key, out.side, ""));
  out.words = terms.Marked();
  const Tree& tree = held.tree(out.side);
  const Sieve sieve(tree, held.graph->compared, terms, query.filter, query.leaves_only);
  for (uint32_t i = 0; i < tree.size(); ++i) {
    if (!sieve.Keeps(i)) continue;
    if (out.total++ >= query.offset && out.hits.size() < query.limit)
      out.hits.push_back({held.Summary(out.side, i), ModuleAround(tree, i)});
  }
  return out;
}

StatusOr<SeekHit> Viewer::Seek(const GraphAddress& key, Side side, const SearchQuery& query, std::string_view from,
                               bool forward) {
  MSP_ASSIGN_OR_RETURN(const SearchTerms terms, ParseSearchTerms(query.text));
  MSP_ASSIGN_OR_RETURN(const QueryContext held, cache_->Hold(key));
  SeekHit out;
  out.side = SideOf(terms, side);
  const Tree& tree = held.tree(out.side);
  MSP_ASSIGN_OR_RETURN(const uint32_t start, held.Find(key, out.side, from));
  const Sieve sieve(tree, held.graph->compared, terms, query.filter, query.leaves_only);
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
  out.total = total;
  if (total == 0) return out;
  const uint32_t found = forward ? (after == kNoNode ? first : after) : (before == kNoNode ? last : before);
  out.node = held.Summary(out.side, found);
  out.index = forward ? (after == kNoNode ? 0 : until_after) : (before == kNoNode ? total - 1 : until_start);
  return out;
}

}  // namespace msprobe::view
