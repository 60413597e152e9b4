#include "graph/build/row_counts.h"

#include <algorithm>
#include <string>

namespace msprobe {

Verdict WorstOf(const NodeGraph& graph, uint32_t node, const std::vector<Verdict>& verdicts) {
  Verdict worst = Verdict::kPass;
  for (uint32_t child : graph.nodes[node].children) worst = std::max(worst, verdicts[child]);
  return worst;
}

void CountRow(const GraphSide& side, const NodeRows::Row& row, bool compared, GraphSummary* summary) {
  const Node& node = side.rank->graph.nodes[row.node];
  if (side.key.source != "NPU") {
    if (node.match == kNoIndex && node.type != NodeType::kCollection) ++summary->golden_unmatched;
    return;
  }
  ++summary->overflows[static_cast<size_t>(row.overflow)];
  if (!compared || node.type == NodeType::kCollection) return;
  if (node.match == kNoIndex) {
    ++summary->unmatched;
  } else if (row.verdict == Verdict::kNone) {
    ++summary->no_data;
  } else {
    ++summary->levels[static_cast<size_t>(row.verdict) - 1];
  }
  if (row.verdict == Verdict::kError && !summary->first_error) {
    summary->first_error = FirstError{side.key.step, side.key.rank, row.order, std::string(node.name)};
  }
}

void NoteBlock(const GraphSide& side, const NodeBlock& block, GraphSummary* summary) {
  if (summary->unread == 0) summary->first_unread = block.first_unread;
  summary->unread += block.unread;
  if (!summary->first_error || !summary->first_error_suspects.empty() || side.key.source != "NPU") return;
  const FirstError& error = *summary->first_error;
  for (const auto& [row, finding] : block.merge) {
    if (finding.kind == FindingKind::kSuspectRank && block.rows.rows[row].order == error.order &&
        side.key.step == error.step && side.key.rank == error.rank)
      summary->first_error_suspects = finding.ranks;
  }
}

}  // namespace msprobe
