// Pairs of nodes that a person matched: compared by the rules of the graphs, from the figures that the file holds.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compare/values/tensor_diff.h"
#include "view/file/graph_sides.h"
#include "view/file/vis_file.h"
#include "view/query/manual_pair_metrics.h"

namespace msprobe::view {

/// The mode of a file by its task; nullopt for a task that is not known.
std::optional<CompareMode> MatchingMode(const VisSettings& config);

/// Takes the columns of a comparison out of a record.
void DropComparison(NodeRecord* record);

/// Of a pair of a tensor dump.
struct ReadTensors {
  size_t read = 0, unread = 0;
  std::string why;  ///< of the first that was not read
};

/// The columns of a comparison afresh, in the rows of `target`, and the verdict, which is as in the file kPass where
/// there is nothing to compare. Tensor mode needs `source`.
Verdict Recompare(CompareMode mode, std::string_view node, NodeRecord* target, const NodeRecord& golden,
                  const TensorSource* source = nullptr, ReadTensors* tensors = nullptr);

/// The same for two nodes of a graph.
StatusOr<Verdict> RecomparePair(const VisFile& file, const GraphSides& graph, uint32_t target, uint32_t golden,
                                ManualPairMetrics* meter, NodeRecord* record, ReadTensors* tensors = nullptr);

/// The record of a node; of a pair made by hand with its comparison, of a cancelled one without.
StatusOr<NodeRecord> LoadEditedRecord(const VisFile& file, const GraphSides& graph, bool target, uint32_t node,
                                      ManualPairMetrics* meter);

/// True for a node whose comparison in the file does not count any more.
inline bool IsEdited(const GraphSides& graph, std::string_view target_name) {
  return graph.edits && (graph.edits->made.find(target_name) != graph.edits->made.end() ||
                         graph.edits->cancelled.find(target_name) != graph.edits->cancelled.end());
}

/// Puts matches made and cancelled into a graph that is as the file has it. What does not fit it (a node that is not
/// there, one that has a partner) is left out.
Status ApplyEdits(const VisFile& file, const std::shared_ptr<const MatchEdits>& edits, ManualPairMetrics* meter,
                  GraphSides* graph);

}  // namespace msprobe::view
