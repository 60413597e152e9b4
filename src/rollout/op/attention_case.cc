#include "rollout/op/attention_case.h"

#include <array>
#include <map>

namespace msprobe {
namespace {

using Point = LinePoint;
constexpr int64_t kMostPositions = 192;
constexpr size_t kMostQueries = 24;

/// Queries among `tokens`, of the sequence that has most of them.
std::vector<PairedToken> QueriesOf(const std::vector<PairedToken>& tokens) {
  std::map<uint32_t, std::vector<PairedToken>> by_sequence;
  for (const PairedToken& token : tokens) {
    if (token.position < kMostPositions) by_sequence[token.sequence].push_back(token);
  }
  std::vector<PairedToken> best;
  int64_t reach = -1;
  for (auto& [sequence, some] : by_sequence) {
    int64_t last = 0;
    for (const PairedToken& token : some) last = std::max(last, token.position);
    if (last > reach) reach = last, best = std::move(some);
  }
  while (best.size() > kMostQueries) best.erase(best.begin() + static_cast<std::ptrdiff_t>(best.size() / 2));
  return best;
}

bool Fill(const ModelLine& line, int64_t layer, const std::vector<TokenRow>& queries, const std::vector<TokenRow>& keys,
          AttentionInput* out) {
  const RowMatrix q = line.Read({layer, Point::kQRotary}, queries), made = line.Read({layer, Point::kCore}, queries);
  const RowMatrix k = line.Read({layer, Point::kKRotary}, keys), v = line.Read({layer, Point::kV}, keys);
  const bool whole =
      !q.empty() && !made.empty() && !k.empty() && !v.empty() && q.width == made.width && k.width == v.width;
  if (!whole || q.width % static_cast<size_t>(out->size) != 0 || k.width % static_cast<size_t>(out->size) != 0)
    return false;
  out->heads = static_cast<int64_t>(q.width) / out->size;
  out->groups = static_cast<int64_t>(k.width) / out->size;
  if (out->groups == 0 || out->heads % out->groups != 0) return false;
  out->queries = q.values, out->outputs = made.values, out->keys = k.values, out->values = v.values;
  return true;
}

}  // namespace

std::optional<AttentionCase> AttentionCaseOf(const ModelLine& train, const ModelLine& rollout, const TokenPairs& pairs,
                                             const std::vector<PairedToken>& tokens, int64_t layer, double tolerance) {
  const std::vector<PairedToken> queries = QueriesOf(tokens);
  if (queries.empty()) return std::nullopt;
  const int64_t size = train.HeadSize();
  if (size <= 0) return std::nullopt;
  AttentionCase out;
  out.tolerance = tolerance;
  out.train.size = out.rollout.size = size;
  const uint32_t sequence = queries[0].sequence;
  int64_t length = 0;
  for (const PairedToken& token : queries) {
    out.train.positions.push_back(token.position);
    length = std::max(length, token.position + 1);
  }
  out.rollout.positions = out.train.positions;
  const std::vector<TokenRow>& all = pairs.train_positions[sequence];
  if (length > static_cast<int64_t>(all.size())) return std::nullopt;
  const std::vector<TokenRow> positions(all.begin(), all.begin() + length);
  std::vector<TokenRow> train_queries, rollout_queries, computed;
  for (const PairedToken& token : queries) {
    train_queries.push_back(token.train);
    rollout_queries.push_back(token.rollout);
  }
  if (!Fill(train, layer, train_queries, positions, &out.train)) return std::nullopt;
  std::vector<int64_t> at;
  for (const PairedToken& token : pairs.tokens) {
    if (token.sequence != sequence || token.position >= length) continue;
    computed.push_back(token.rollout);
    at.push_back(token.position);
  }
  if (!Fill(rollout, layer, rollout_queries, computed, &out.rollout)) return std::nullopt;
  const auto width = static_cast<size_t>(out.rollout.groups * size);
  std::vector<float> keys = out.train.keys, values = out.train.values;
  if (keys.size() != width * positions.size()) return std::nullopt;
  for (size_t i = 0; i < at.size(); ++i) {
    const auto to = static_cast<std::ptrdiff_t>(static_cast<size_t>(at[i]) * width),
               from = static_cast<std::ptrdiff_t>(i * width), end = static_cast<std::ptrdiff_t>((i + 1) * width);
    std::copy(out.rollout.keys.begin() + from, out.rollout.keys.begin() + end, keys.begin() + to);
    std::copy(out.rollout.values.begin() + from, out.rollout.values.begin() + end, values.begin() + to);
  }
  out.rollout.keys = std::move(keys), out.rollout.values = std::move(values);
  return out;
}

}  // namespace msprobe
