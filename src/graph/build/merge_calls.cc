#include "graph/build/merge_calls.h"

#include <unordered_map>

#include "base/parallel.h"
#include "base/text.h"
#include "ops/collective.h"

namespace msprobe {
namespace {

struct Shown {
  const RankGraph& graph;
  const std::unordered_map<uint32_t, uint32_t>& node_of;  // of the ops of one rank
  const std::vector<int64_t>& rows;                       // of each node
  const std::vector<std::string>& index;
};

StatusOr<RankNodeCalls> ReadRank(int rank, const DumpFile& dump, int graph_rank, const Shown& shown) {
  RankNodeCalls out;
  out.rank = rank;
  out.truncated = dump.wholeness().LacksOps();
  JsonDoc doc;
  for (size_t op = 0; op < dump.ops().size(); ++op) {
    const std::string_view name = dump.ops()[op].name;
    if (!IsCommunication(name)) continue;
    MSP_RETURN_IF_ERROR(dump.ParseOp(op, &doc));
    NodeCall call = ReadNodeCall(name, doc, rank);
    if (call.transfers.empty()) continue;
    call.line = static_cast<uint32_t>(op);
    if (const auto it = shown.node_of.find(call.line); it != shown.node_of.end()) {
      call.node = shown.graph.graph.nodes[it->second].name;
      call.row_id = shown.rows[it->second];
      call.index = shown.index[it->second];
      call.shown = graph_rank;
    }
    out.calls.push_back(std::move(call));
  }
  return out;
}

}  // namespace

StatusOr<std::vector<RankNodeCalls>> ReadMergedCalls(const GraphSide& side, int64_t first_row,
                                                     const std::vector<std::string>& index) {
  const RankGraph& graph = *side.rank;
  const MergedData& merged = *graph.merged;
  std::vector<int64_t> rows(graph.graph.nodes.size(), 0);
  for (size_t i = 0; i < graph.graph.order.size(); ++i)
    rows[graph.graph.order[i]] = first_row + static_cast<int64_t>(i);
  const std::vector<const RankFiles*> files = FilesOf(graph);
  std::vector<RankNodeCalls> out(files.size());
  MSP_RETURN_IF_ERROR(ParallelFor(files.size(), [&](size_t r) -> Status {
    const Shown shown{graph, merged.calls[r], rows, index};
    MSP_ASSIGN_OR_RETURN(out[r], ReadRank(merged.ranks[r], files[r]->dump, side.key.rank, shown));
    return OkStatus();
  }));
  return out;
}

}  // namespace msprobe
