#include "rollout/op/dump_logits.h"

#include <algorithm>
#include <map>
#include <utility>

#include "rollout/op/model_line.h"

namespace msprobe {
namespace {

constexpr size_t kMostDumpLogits = size_t{1} << 25;  // numbers of all requests, as the stage sampling looks at

using RowsByPosition = std::map<int64_t, TokenRow>;

/// By sequence the rows whose logits were recorded.
std::vector<RowsByPosition> EngineRows(const std::vector<std::vector<int64_t>>& sequences, const SideOps& ops) {
  std::vector<RowsByPosition> out(sequences.size());
  for (const PairedToken& token : FindTokens(sequences, ops).tokens) {
    if (token.rollout.last >= 0) out[token.sequence].emplace(token.position, token.rollout);
  }
  return out;
}

std::vector<RowsByPosition> TrainerRows(const std::vector<std::vector<int64_t>>& sequences, const SideOps& ops) {
  std::vector<RowsByPosition> out(sequences.size());
  const auto rows = FindSequences(sequences, ops);
  for (size_t s = 0; s < rows.size(); ++s) {
    for (size_t i = 0; i < rows[s].size(); ++i) out[s].emplace(static_cast<int64_t>(i), rows[s][i]);
  }
  return out;
}

/// Those of the response from its first token on, as far as they are known: what a token was drawn from stands at the
/// token before it.
std::vector<TokenRow> RowsOfResponse(const RolloutRequest& request, const RowsByPosition& known) {
  std::vector<TokenRow> out;
  for (int64_t at = request.prompt - 1; at + 1 < static_cast<int64_t>(request.tokens.size()); ++at) {
    const auto found = known.find(at);
    if (found == known.end()) break;
    out.push_back(found->second);
  }
  return out;
}

}  // namespace

Status TakeDumpLogits(RolloutSide side, SideEvidence* evidence) {
  if (!evidence->records || evidence->dumps.empty()) return OkStatus();
  std::vector<RolloutRequest>& requests = evidence->records->requests;
  if (std::any_of(requests.begin(), requests.end(), [](const RolloutRequest& r) { return !r.logits.empty(); }))
    return OkStatus();
  int rank = evidence->dumps[0].rank;
  for (const SideDump& dump : evidence->dumps) rank = std::min(rank, dump.rank);
  MSP_ASSIGN_OR_RETURN(const SideOps ops, SideOps::Open(evidence->dumps, rank));
  std::vector<std::vector<int64_t>> sequences;
  for (const RolloutRequest& request : requests) sequences.push_back(request.tokens);
  const auto known = side == RolloutSide::kRollout ? EngineRows(sequences, ops) : TrainerRows(sequences, ops);
  const ModelLine line(ops);
  size_t taken = 0;
  for (size_t i = 0; i < requests.size(); ++i) {
    const std::vector<TokenRow> rows = RowsOfResponse(requests[i], known[i]);
    if (rows.empty()) continue;
    RowMatrix logits = line.Read({-1, LinePoint::kLogits}, rows);
    if (logits.rows != rows.size() || logits.width < 2) continue;
    taken += logits.values.size();
    if (taken > kMostDumpLogits) break;
    requests[i].vocabulary = static_cast<int64_t>(logits.width);
    requests[i].logits = std::move(logits.values);
  }
  return OkStatus();
}

}  // namespace msprobe
