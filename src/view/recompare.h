// Pairs of nodes that a person matched: compared by the rules of the graphs, from the figures that the file holds.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/precision.h"
#include "view/tensor_meter.h"
#include "view/vis_file.h"

namespace msprobe::view {

/// The mode of a file by its task; nullopt for a task that is not known.
std::optional<GraphMode> MatchingMode(const VisConfig& config);

/// Takes the columns of a comparison out of a record.
void DropComparison(NodeRecord* record);

/// Reads the tensors of the rows and measures them; each row points to its entry then.
using MeasureRows = std::function<void(std::vector<Row>*, std::deque<TensorDiff>*)>;

/// Of a pair of a tensor dump.
struct ReadTensors {
  size_t read = 0, unread = 0;
  std::string why;  ///< of the first that was not read
};

/// The columns of a comparison afresh, in the rows of `npu`, and the verdict, which is as in the file kPass where
/// there is nothing to compare. Tensor mode needs `measure`.
Level Recompare(GraphMode mode, std::string_view node, NodeRecord* npu, const NodeRecord& bench,
                const MeasureRows& measure = {}, ReadTensors* tensors = nullptr);

/// The same for two nodes of a graph.
StatusOr<Level> RecomparePair(const VisFile& file, const RankGraph& graph, uint32_t npu, uint32_t bench,
                              TensorMeter* meter, NodeRecord* record, ReadTensors* tensors = nullptr);

/// The record of a node; of a pair made by hand with its comparison, of a cancelled one without.
StatusOr<NodeRecord> LoadEditedRecord(const VisFile& file, const RankGraph& graph, bool npu, uint32_t node,
                                      TensorMeter* meter);

/// True for a node whose comparison in the file does not count any more.
inline bool IsEdited(const RankGraph& graph, std::string_view npu_name) {
  return graph.edits && (graph.edits->made.find(npu_name) != graph.edits->made.end() ||
                         graph.edits->cancelled.find(npu_name) != graph.edits->cancelled.end());
}

/// Puts matches made and cancelled into a graph that is as the file has it. What does not fit it (a node that is not
/// there, one that has a partner) is left out.
Status ApplyEdits(const VisFile& file, const std::shared_ptr<const MatchEdits>& edits, TensorMeter* meter,
                  RankGraph* graph);

}  // namespace msprobe::view
