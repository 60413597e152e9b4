// Questions that look for nodes by name and by what is wrong with them.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "view/query/graph_memo.h"
#include "view/query/node_errors.h"
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

// What the file says of nodes beside what is in the graph; null where nobody asked.
struct Measured {
  std::shared_ptr<const NodeErrors> errors;
  std::shared_ptr<const NodeDTypes> dtypes;
};

StatusOr<Measured> MeasuredFor(const QueryContext& held, Side side, const SearchTerms& terms, HitSort sort) {
  Measured out;
  const bool known = held.file->config().verdicts;
  if (terms.AsksErrors() && !known)
    return UsageError("error: no errors are known in this graph: compare two runs with msprobe graph_visualize");
  if (known && (terms.AsksErrors() || sort == HitSort::kError)) {
    MSP_ASSIGN_OR_RETURN(out.errors, ErrorsOf(*held.file, *held.graph, side));
  }
  if (!terms.AsksDTypes()) return out;
  MSP_ASSIGN_OR_RETURN(out.dtypes,
                       held.graph->memo->dtypes[side == Side::kTarget ? 0 : 1].Of(*held.file, held.tree(side)));
  if (std::all_of(out.dtypes->begin(), out.dtypes->end(), [](uint32_t bits) { return bits == 0; }))
    return UsageError("dtype: no dtypes are known in this graph: make it from a dump of statistics or tensors");
  return out;
}

// "0-3,8".
std::string Ranges(const std::vector<int64_t>& ascending) {
  std::string out;
  for (size_t i = 0, last = 0; i < ascending.size(); i = last + 1) {
    for (last = i; last + 1 < ascending.size() && ascending[last + 1] == ascending[last] + 1;) ++last;
    out += fmt::format("{}{}", out.empty() ? "" : ",", ascending[i]);
    if (last > i) out += fmt::format("-{}", ascending[last]);
  }
  return out;
}

// The graph that a search is of.
StatusOr<GraphAddress> AddressOf(const SearchTerms& terms, GraphAddress key, QueryCaches* caches) {
  if (!terms.rank || *terms.rank == key.rank) return key;
  MSP_ASSIGN_OR_RETURN(const auto file, caches->File(key.file));
  const std::vector<int64_t>& ranks = file->config().ranks;
  if (!std::binary_search(ranks.begin(), ranks.end(), *terms.rank))
    return UsageError(fmt::format("rank: there is no rank {} in this file: it has {}", *terms.rank, Ranges(ranks)));
  key.rank = *terms.rank;
  return key;
}

}  // namespace

StatusOr<SearchHits> Viewer::Search(const GraphAddress& shown, Side side, const SearchQuery& query) {
  MSP_ASSIGN_OR_RETURN(const SearchTerms terms, ParseSearchTerms(query.text));
  MSP_ASSIGN_OR_RETURN(const GraphAddress key, AddressOf(terms, shown, cache_.get()));
  MSP_ASSIGN_OR_RETURN(const QueryContext held, cache_->Hold(key));
  SearchHits out;
  out.side = SideOf(terms, side);
  out.rank = key.rank;
  MSP_ASSIGN_OR_RETURN([[maybe_unused]] const uint32_t root, held.Find(key, out.side, ""));
  MSP_ASSIGN_OR_RETURN(const Measured measured, MeasuredFor(held, out.side, terms, query.sort));
  out.words = terms.Marked();
  const Tree& tree = held.tree(out.side);
  const Sieve sieve(tree, held.graph->compared, terms, query.filter, query.leaves_only, measured.errors.get(),
                    measured.dtypes.get());
  const HitOrder order(tree, query.sort, measured.errors.get());
  std::vector<uint32_t> listed;  // all hits, unless they are in order as they come
  for (uint32_t i = 0; i < tree.size(); ++i) {
    if (!sieve.Keeps(i)) continue;
    const uint64_t before = out.total++;
    if (!order.is_execution() || (before >= query.offset && listed.size() < query.limit)) listed.push_back(i);
  }
  size_t first = 0, last = listed.size();
  if (!order.is_execution()) {
    first = static_cast<size_t>(std::min<uint64_t>(query.offset, listed.size()));
    last = first + static_cast<size_t>(std::min<uint64_t>(query.limit, listed.size() - first));
    std::partial_sort(listed.begin(), listed.begin() + static_cast<ptrdiff_t>(last), listed.end(), order);
  }
  for (size_t i = first; i < last; ++i)
    out.hits.push_back({held.Summary(out.side, listed[i]), ModuleAround(tree, listed[i])});
  return out;
}

StatusOr<SeekHit> Viewer::Seek(const GraphAddress& shown, Side side, const SearchQuery& query, std::string_view from,
                               bool forward) {
  MSP_ASSIGN_OR_RETURN(const SearchTerms terms, ParseSearchTerms(query.text));
  MSP_ASSIGN_OR_RETURN(const GraphAddress key, AddressOf(terms, shown, cache_.get()));
  if (key.rank != shown.rank) from = {};  // of another graph
  MSP_ASSIGN_OR_RETURN(const QueryContext held, cache_->Hold(key));
  SeekHit out;
  out.side = SideOf(terms, side);
  out.rank = key.rank;
  const Tree& tree = held.tree(out.side);
  MSP_ASSIGN_OR_RETURN(const uint32_t start, held.Find(key, out.side, from));
  MSP_ASSIGN_OR_RETURN(const Measured measured, MeasuredFor(held, out.side, terms, query.sort));
  const Sieve sieve(tree, held.graph->compared, terms, query.filter, query.leaves_only, measured.errors.get(),
                    measured.dtypes.get());
  const HitOrder order(tree, query.sort, measured.errors.get());
  const bool anywhere = from.empty();
  uint32_t before = kNoNode, after = kNoNode, first = kNoNode, last = kNoNode;
  uint64_t total = 0, until_after = 0, until_start = 0;  // those up to the start, those before it
  for (uint32_t i = 0; i < tree.size(); ++i) {
    if (!sieve.Keeps(i)) continue;
    ++total;
    if (first == kNoNode || order(i, first)) first = i;
    if (last == kNoNode || order(last, i)) last = i;
    if (anywhere) continue;
    if (order(start, i)) {
      if (after == kNoNode || order(i, after)) after = i;
      continue;
    }
    ++until_after;
    if (i == start) continue;
    ++until_start;
    if (before == kNoNode || order(before, i)) before = i;
  }
  out.total = total;
  if (total == 0) return out;
  const uint32_t found = forward ? (after == kNoNode ? first : after) : (before == kNoNode ? last : before);
  out.node = held.Summary(out.side, found);
  if (forward)
    out.index = after == kNoNode ? 0 : until_after;
  else
    out.index = before == kNoNode ? total - 1 : until_start - 1;
  return out;
}

}  // namespace msprobe::view
