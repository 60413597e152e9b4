// Pairs of nodes that a person matched: compared by the rules of the graphs, from the figures that the file holds.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "graph/precision.h"
#include "view/vis_file.h"

namespace msprobe::view {

/// The mode of a file by its task; nullopt where matches cannot be compared: the values of a tensor dump are not in the
/// file.
std::optional<GraphMode> MatchingMode(const VisConfig& config);

/// Takes the columns of a comparison out of a record.
void DropComparison(NodeRecord* record);

/// The columns of a comparison afresh, in the rows of `npu`, and the verdict, which is as in the file kPass where
/// there is nothing to compare.
Level Recompare(GraphMode mode, std::string_view node, NodeRecord* npu, const NodeRecord& bench);

/// The record of a node; of a pair made by hand with its comparison, of a cancelled one without.
StatusOr<NodeRecord> LoadEditedRecord(const VisFile& file, const RankGraph& graph, bool npu, uint32_t node);

/// True for a node whose comparison in the file does not count any more.
inline bool IsEdited(const RankGraph& graph, std::string_view npu_name) {
  return graph.edits && (graph.edits->made.find(npu_name) != graph.edits->made.end() ||
                         graph.edits->cancelled.find(npu_name) != graph.edits->cancelled.end());
}

/// Puts matches made and cancelled into a graph that is as the file has it. What does not fit it (a node that is not
/// there, one that has a partner) is left out.
Status ApplyEdits(const VisFile& file, const std::shared_ptr<const MatchEdits>& edits, RankGraph* graph);

}  // namespace msprobe::view
