#include "graph/build/merge_findings.h"

#include <algorithm>

#include "base/message.h"

namespace msprobe {
namespace {

constexpr size_t kMostMergeFindings = 200;  // of a kind

void Add(const GraphKey& key, int64_t row_id, const MergeFinding& found, std::vector<GraphFinding>* findings) {
  const auto same = [&](const GraphFinding& f) { return f.kind == found.kind && f.source == key.source; };
  if (static_cast<size_t>(std::count_if(findings->begin(), findings->end(), same)) >= kMostMergeFindings) return;
  GraphFinding f;
  f.kind = found.kind;
  f.source = key.source;
  f.step = key.step;
  f.rank = key.rank;
  f.row_id = row_id;
  f.node = found.node;
  f.text = Msg("{}: {}", found.node, found.text);
  f.ranks = found.ranks;
  findings->push_back(std::move(f));
}

}  // namespace

void AddMergeFindings(const GraphKey& key, int64_t first_row, const std::vector<std::pair<size_t, MergeFinding>>& found,
                      std::vector<GraphFinding>* findings) {
  for (const auto& [row, f] : found) Add(key, first_row + static_cast<int64_t>(row), f, findings);
}

void KeepSuspectsOf(const std::vector<BegunOp>& begun, size_t first, std::vector<GraphFinding>* findings) {
  const auto passed_on = [&](const GraphFinding& f) {
    return f.kind == FindingKind::kSuspectRank &&
           std::none_of(begun.begin(), begun.end(), [&](const BegunOp& op) { return op.row == f.row_id; });
  };
  const auto from = findings->begin() + static_cast<std::ptrdiff_t>(std::min(first, findings->size()));
  findings->erase(std::remove_if(from, findings->end(), passed_on), findings->end());
}

void AddMergeFindings(const GraphKey& key, const std::vector<MergeFinding>& found,
                      std::vector<GraphFinding>* findings) {
  for (const MergeFinding& f : found) Add(key, 0, f, findings);
}

}  // namespace msprobe
