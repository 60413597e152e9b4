// What the queries share: the files and graphs that are kept for the next one.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "view/matching/match_history.h"
#include "view/matching/match_store.h"
#include "view/query/graph_cache.h"
#include "view/query/manual_pair_metrics.h"
#include "view/query/query_context.h"
#include "view/run/run_cache.h"
#include "view/run/run_findings.h"
#include "view/trend/trend_cache.h"

namespace msprobe::view {

/// Files and graphs kept for the next question.
struct QueryCaches {
  QueryCaches(const GraphDirectory& d, size_t bytes, std::string tensors)
      : directory(d), meter(std::move(tensors)), graphs(bytes, &meter) {}
  const GraphDirectory& directory;
  ManualPairMetrics meter;
  GraphCache graphs;
  TrendCache trends;
  RunCache runs;
  RunJudgements judgements;
  MatchStore matches;
  MatchHistory changes;  ///< of the matches

  StatusOr<std::shared_ptr<const VisFile>> File(std::string_view name) {
    MSP_ASSIGN_OR_RETURN(auto found, directory.Resolve(name));
    return graphs.File(found.first, found.second, name);
  }
  /// As the file and the matches by hand beside it have it.
  StatusOr<QueryContext> Hold(const GraphAddress& key) {
    MSP_ASSIGN_OR_RETURN(auto found, directory.Resolve(key.file));
    const MatchStore::Loaded loaded = matches.Load(found.first);
    const auto at = loaded.edits->find({key.step, key.rank});
    std::shared_ptr<const MatchEdits> edits;
    // Shares the ownership of the whole.
    if (at != loaded.edits->end()) edits = std::shared_ptr<const MatchEdits>(loaded.edits, &at->second);
    QueryContext held;
    held.meter = &meter;
    MSP_ASSIGN_OR_RETURN(held.file, graphs.File(found.first, found.second, key.file));
    MSP_ASSIGN_OR_RETURN(held.graph, graphs.Graph(held.file, key.step, key.rank, edits));
    return held;
  }
};

}  // namespace msprobe::view
