#include "diagnose/diff_analyze.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace msprobe {
namespace {

constexpr size_t kNameParts = 4;  // of an op that the analysis reads

/// Results that are not written in every case: which outputs of which function.
bool IsIgnoredOutput(std::string_view op, size_t output) {
  return Contains(op, ".npu_fusion_attention.") && (output == 4 || output == 5);
}

bool MeansNothing(std::string_view op) {
  return Contains(op, "Torch.empty") || Contains(op, "Torch.fill") || Contains(op, "Tensor.__setitem__") ||
         std::count(op.begin(), op.end(), '.') + 1 < static_cast<std::ptrdiff_t>(kNameParts);
}

}  // namespace

bool IsSameByThresholds(const OpDiff& op, CompareMode mode) {
  size_t output = 0;
  for (size_t i = 0; i < op.rows_used; ++i) {
    if (op.target[i].state != ItemState::kOutput) continue;
    const DiffRow& row = op.rows[i];
    if (IsIgnoredOutput(op.op, output++) || row.golden == kNoItem) continue;
    if (mode == CompareMode::kChecksum) {
      if (op.target[i].checksum != op.golden[static_cast<size_t>(row.golden)].checksum) return false;
      continue;
    }
    for (const StatDiff& d : row.diff) {
      if (d.rel_cell == StatDiff::Cell::kNumber && d.rel > 100 * op.thresholds->most_relative) return false;
    }
  }
  return true;
}

StatusOr<RankSuspects> SuspectsOf(const DumpFile& dump, const FilePair& files, const std::vector<bool>& same) {
  RankSuspects out;
  out.files = files;
  MSP_ASSIGN_OR_RETURN(out.calls, ReadCalls(files.rank, dump));
  for (size_t i = 0; i < same.size(); ++i) {
    if (!same[i] && !MeansNothing(dump.ops()[i].name)) out.ops.push_back(i);
  }
  return out;
}

std::vector<Suspect> FirstSuspects(std::vector<RankSuspects> ranks) {
  std::sort(ranks.begin(), ranks.end(),
            [](const RankSuspects& a, const RankSuspects& b) { return a.files.rank < b.files.rank; });
  std::vector<RankCalls> calls;
  for (RankSuspects& r : ranks) calls.push_back(std::move(r.calls));
  const CommGraph graph = JoinCalls(std::move(calls));
  struct Candidate {
    size_t rank;
    CommTime time;
    bool before, behind;  // all calls of the rank
  };
  std::vector<Candidate> found;
  for (size_t r = 0; r < ranks.size(); ++r) {
    if (ranks[r].ops.empty()) continue;
    const size_t op = ranks[r].ops.front();
    const bool behind = graph.ranks[r].CallFrom(op) == graph.ranks[r].calls.size();
    const CommTime time = graph.TimeOf(r, op);
    found.push_back({r, time, time.layer == 0, behind});
  }
  const auto first = std::min_element(found.begin(), found.end(),
                                      [](const Candidate& a, const Candidate& b) { return a.time < b.time; });
  std::vector<Suspect> out;
  const bool any_before = std::any_of(found.begin(), found.end(), [](const Candidate& c) { return c.before; });
  const bool all_behind = std::all_of(found.begin(), found.end(), [](const Candidate& c) { return c.behind; });
  for (const Candidate& c : found) {
    if (any_before ? c.before : all_behind || c.time == first->time)
      out.push_back({ranks[c.rank].files, ranks[c.rank].ops.front()});
  }
  return out;
}

}  // namespace msprobe
