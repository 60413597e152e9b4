// Questions about a whole rank or file, and about what a node has to do with others.
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "view/file/rulings.h"
#include "view/query/graph_memo.h"
#include "view/query/node_history.h"
#include "view/query/node_links.h"
#include "view/query/overview.h"
#include "view/query/query_caches.h"
#include "view/query/recompare.h"
#include "view/query/viewer.h"
#include "view/values/activations.h"

namespace msprobe::view {
namespace {

constexpr size_t kMostEditedCells = 64;  // each is a graph to be loaded

std::vector<FlowNeighbour> Neighbours(const QueryContext& held, Side side, const std::vector<FlowEdge>& edges,
                                      bool givers) {
  std::vector<FlowNeighbour> out;
  out.reserve(edges.size());
  const Tree& tree = held.tree(side);
  for (const FlowEdge& e : edges) {
    const uint32_t node = givers ? e.from : e.node;
    FlowNeighbour n{held.Summary(side, node), {}, e.input, e.output, TrustPercent(e.trust)};
    for (uint32_t up = tree[node].parent; up != kNoNode && up != tree.root(); up = tree[up].parent) {
      n.path.emplace_back(tree.Name(up));
    }
    std::reverse(n.path.begin(), n.path.end());
    out.push_back(std::move(n));
  }
  return out;
}

}  // namespace

StatusOr<std::vector<OverviewCell>> Viewer::Matrix(std::string_view file) {
  MSP_ASSIGN_OR_RETURN(auto open, cache_->File(file));
  MSP_ASSIGN_OR_RETURN(std::vector<OverviewCell> cells, LoadMatrix(*open));
  MSP_ASSIGN_OR_RETURN(const auto found, cache_->directory.Resolve(file));
  const auto edits = cache_->matches.Load(found.first).edits;
  size_t loaded = 0;
  for (OverviewCell& cell : cells) {
    if (loaded >= kMostEditedCells) break;
    if (edits->find({cell.step, cell.rank}) == edits->end()) continue;
    ++loaded;
    MSP_ASSIGN_OR_RETURN(const QueryContext held, cache_->Hold({std::string(file), cell.step, cell.rank}));
    const Tree& target = held.graph->target;
    if (target.empty()) continue;
    const SubtreeCounts& counts = target[target.root()].counts;
    cell.error = counts.error;
    cell.warning = counts.warning;
    cell.unmatched = counts.unmatched;
    const RulerCounts rulings = CountRulings(target);
    cell.inherited = rulings.inherited;
    cell.suspicious = rulings.suspicious;
    cell.bug = rulings.bug;
  }
  return cells;
}

StatusOr<NodeHistory> Viewer::History(std::string_view file, Side side, std::string_view name) {
  MSP_ASSIGN_OR_RETURN(auto open, cache_->File(file));
  MSP_ASSIGN_OR_RETURN(NodeHistory history, LoadHistory(*open, side, name));
  if (history.cells.empty())
    return BadInput(fmt::format("no graph of {} has a node {}: check its name, or search for it", file, name));
  MSP_ASSIGN_OR_RETURN(const auto found, cache_->directory.Resolve(file));
  const auto edits = cache_->matches.Load(found.first).edits;
  size_t loaded = 0;
  for (HistoryCell& cell : history.cells) {
    if (loaded >= kMostEditedCells || edits->empty()) break;
    if (edits->find({cell.step, cell.rank}) == edits->end()) continue;
    ++loaded;
    MSP_ASSIGN_OR_RETURN(const QueryContext held, cache_->Hold({std::string(file), cell.step, cell.rank}));
    const Tree& tree = held.tree(side);
    const uint32_t node = tree.Find(name);
    if (node == kNoNode) continue;
    cell.matched = tree.IsMatched(node);
    cell.level = tree.LevelOf(node);
    cell.ruling = tree.RulingOf(node);
    if (side == Side::kTarget && IsEdited(*held.graph, name)) cell.error = cell.units = std::nullopt;
  }
  return history;
}

StatusOr<std::string> Viewer::Verdict(std::string_view file) {
  MSP_ASSIGN_OR_RETURN(auto open, cache_->File(file));
  return LoadVerdict(*open);
}

StatusOr<Findings> Viewer::FindingsOf(const GraphAddress& key) {
  MSP_ASSIGN_OR_RETURN(auto open, cache_->File(key.file));
  MSP_ASSIGN_OR_RETURN(Findings findings, LoadFindings(*open, key.step, key.rank));
  MSP_ASSIGN_OR_RETURN(const auto found, cache_->directory.Resolve(key.file));
  if (cache_->matches.Load(found.first).edits->empty()) return findings;
  // What was said about a comparison that does not count any more.
  MSP_ASSIGN_OR_RETURN(const QueryContext held, cache_->Hold(key));
  findings.total -= std::erase_if(findings.list, [&](const FindingRow& f) {
    return (f.kind == "origin" || f.kind == "first_error") && IsEdited(*held.graph, f.name);
  });
  return findings;
}

StatusOr<std::vector<LayerSummary>> Viewer::Layers(const GraphAddress& key) {
  MSP_ASSIGN_OR_RETURN(const QueryContext held, cache_->Hold(key));
  MSP_ASSIGN_OR_RETURN(auto columns, LoadLayers(*held.file, *held.graph));
  std::vector<LayerSummary> out;
  out.reserve(columns.size());
  const auto name = [&](const LayerCell& cell) {
    return cell.node == kNoNode ? std::string() : std::string(held.graph->target.Name(cell.node));
  };
  for (LayerColumn& column : columns) {
    std::string forward = name(column.forward), backward = name(column.backward);
    out.push_back({std::move(column), std::move(forward), std::move(backward)});
  }
  return out;
}

StatusOr<std::string> Viewer::ActivationsOf(const GraphAddress& key) {
  MSP_ASSIGN_OR_RETURN(const QueryContext held, cache_->Hold(key));
  GraphMemo& memo = *held.graph->memo;
  const std::lock_guard lock(memo.activations_mutex);
  if (!memo.activations) {
    MSP_ASSIGN_OR_RETURN(memo.activations, FindActivations(*held.file, held.graph->target));
  }
  return ToJson(*memo.activations, held.graph->target);
}

StatusOr<LinkDetail> Viewer::Links(const GraphAddress& key, Side side, std::string_view name) {
  MSP_ASSIGN_OR_RETURN(const QueryContext held, cache_->Hold(key));
  MSP_ASSIGN_OR_RETURN(const uint32_t node, held.Find(key, side, name));
  MSP_ASSIGN_OR_RETURN(NodeLinks links, LoadLinks(*held.file, *held.graph, side == Side::kTarget, node));
  LinkDetail out;
  if (links.previous != kNoNode) out.previous = held.Summary(side, links.previous);
  if (links.next != kNoNode) out.next = held.Summary(side, links.next);
  out.flow_known = links.flow_known;
  out.producers = Neighbours(held, side, links.producers, /*givers=*/true);
  out.consumers = Neighbours(held, side, links.consumers, /*givers=*/false);
  out.producers_total = links.producers_total;
  out.consumers_total = links.consumers_total;
  out.partners = std::move(links.partners);
  out.precision = std::move(links.precision);
  return out;
}

}  // namespace msprobe::view
