#include "rollout/stages/qkv_order.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/text.h"
#include "weights/causes/weight_rows.h"
#include "weights/role_words.h"

namespace msprobe {
namespace {

struct QkvHeads {
  int64_t heads = 0, groups = 0, size = 0;
  int64_t rows() const { return (heads + 2 * groups) * size; }
};

/// Nothing where the heads do not make up so many rows.
QkvHeads HeadsOf(const ModelFacts& facts, int64_t rows) {
  QkvHeads out{facts.heads, facts.groups > 0 ? facts.groups : facts.heads, facts.head_dim};
  if (out.size == 0 && out.heads > 0) out.size = facts.hidden / out.heads;
  // A configuration may name groups that its model does not know.
  if (rows == 3 * out.heads * out.size) out.groups = out.heads;
  if (out.groups <= 0 || out.size <= 0 || out.heads % out.groups != 0 || out.rows() != rows) return {};
  return out;
}

/// Where each row of a tensor that is stored group by group lies in one that is not; empty where the heads do not say.
std::vector<size_t> PlainRows(const ModelFacts& facts, int64_t rows) {
  const QkvHeads h = HeadsOf(facts, rows);
  std::vector<size_t> out;
  if (h.groups == 0) return out;
  const int64_t q = h.heads / h.groups * h.size;
  for (int64_t g = 0; g < h.groups; ++g) {
    for (int64_t i = 0; i < q; ++i) out.push_back(static_cast<size_t>(g * q + i));
    for (const int64_t begin : {h.heads * h.size, (h.heads + h.groups) * h.size}) {
      for (int64_t i = 0; i < h.size; ++i) out.push_back(static_cast<size_t>(begin + g * h.size + i));
    }
  }
  return out;
}

bool IsFusedQkv(const WeightPair& pair) {
  return pair.by < MatchedBy::kStatistics && pair.same_shape && !pair.a.shape.empty() &&
         EndsWith(ParseWeightName(pair.b.name).what, "qkv");
}

/// Who stores the weights of a model group by group.
enum class Grouped : uint8_t { kNobody, kTrainer, kEngine };

/// The engine's row for each row of the trainer.
std::vector<size_t> OrderOf(Grouped who, const std::vector<size_t>& plain) {
  if (who == Grouped::kTrainer) return plain;
  std::vector<size_t> out(plain.size());
  for (size_t i = 0; i < plain.size(); ++i) out[plain[i]] = i;
  return out;
}

bool IsCopyInOrder(const WeightPair& pair, const std::vector<size_t>& order) {
  const DType type = CoarserType(pair.a.dtype, pair.b.dtype);
  const WeightRows a = RowsOfWeight(pair.a, type), b = RowsOfWeight(pair.b, type);
  if (order.empty() || a.rows != b.rows || a.columns != b.columns || a.hashes.size() != order.size()) return false;
  for (size_t i = 0; i < order.size(); ++i) {
    if (a.hashes[i] != b.hashes[order[i]]) return false;
  }
  return true;
}

WeightTensor InOrder(const WeightTensor& tensor, const std::vector<size_t>& order) {
  std::vector<IndexRange> ranges;
  for (const size_t row : order) {
    const auto at = static_cast<int64_t>(row);
    if (ranges.empty() || ranges.back().second != at) ranges.emplace_back(at, at);
    ++ranges.back().second;
  }
  return SelectRanges(tensor, 0, ranges, tensor.part);
}

}  // namespace

StatusOr<size_t> TakeOtherQkvOrder(const Checkpoint& a, const Checkpoint& b, std::vector<WeightPair>* pairs,
                                   std::vector<WeightDiff>* diffs) {
  Grouped grouped = Grouped::kNobody;
  std::vector<size_t> fused;
  for (size_t i = 0; i < pairs->size(); ++i) {
    const WeightPair& pair = (*pairs)[i];
    if (!IsFusedQkv(pair)) continue;
    const std::vector<size_t> plain = PlainRows(a.facts, pair.a.shape[0]);
    if (plain.empty()) continue;
    Grouped own = Grouped::kNobody;
    for (const Grouped who : {Grouped::kTrainer, Grouped::kEngine}) {
      if (own == Grouped::kNobody && IsCopyInOrder(pair, OrderOf(who, plain))) own = who;
    }
    const bool copy = (*diffs)[i].verdict <= WeightVerdict::kRounded;
    if (copy && own == Grouped::kNobody) return size_t{0};
    if (copy) continue;
    fused.push_back(i);
    if (grouped == Grouped::kNobody) grouped = own;
  }
  if (grouped == Grouped::kNobody) return size_t{0};
  std::vector<WeightPair> again;
  for (const size_t i : fused) {
    WeightPair& pair = (*pairs)[i];
    pair.b = InOrder(pair.b, OrderOf(grouped, PlainRows(a.facts, pair.a.shape[0])));
    again.push_back(pair);
  }
  MSP_ASSIGN_OR_RETURN(std::vector<WeightDiff> compared, CompareWeights(a, b, again));
  for (size_t i = 0; i < fused.size(); ++i) (*diffs)[fused[i]] = std::move(compared[i]);
  return fused.size();
}

HeadsText HeadsOfRows(const ModelFacts& facts, const WeightTensor& fused, const std::vector<int64_t>& rows) {
  if (fused.shape.empty() || !fused.part.empty()) return {};
  const WeightName name = ParseWeightName(fused.name);
  const QkvHeads h = HeadsOf(facts, fused.shape[0]);
  if (!EndsWith(name.what, "qkv") || h.groups == 0) return {};
  const bool grouped = name.leaf == "query_key_value" || name.leaf == "linear_qkv";
  const std::vector<size_t> plain = PlainRows(facts, fused.shape[0]);
  const std::array<int64_t, 4> begin{0, h.heads, h.heads + h.groups, h.heads + 2 * h.groups};  // of q, k, v in heads
  std::map<int64_t, int64_t> count;  // head of q, k and v behind each other -> its rows
  for (const int64_t row : rows)
    ++count[(grouped ? static_cast<int64_t>(plain[static_cast<size_t>(row)]) : row) / h.size];
  std::map<std::pair<int64_t, int64_t>, std::string> parts;  // first and last head -> "q, k"
  for (size_t part = 0; part < 3; ++part) {
    std::set<int64_t> heads;
    for (const auto& [head, n] : count) {
      if (n != h.size) return {};
      if (head >= begin[part] && head < begin[part + 1]) heads.insert(head - begin[part]);
    }
    if (heads.empty()) continue;
    const int64_t first = *heads.begin(), last = *heads.rbegin();
    if (last - first + 1 != static_cast<int64_t>(heads.size())) return {};
    std::string& names = parts[{first, last}];
    names += (names.empty() ? "" : ", ") + std::string(1, "qkv"[part]);
  }
  std::vector<Message> out;
  for (const auto& [range, names] : parts)
    out.push_back(range.first == range.second ? Msg("head {} of {}", range.first, names)
                                              : Msg("heads {} to {} of {}", range.first, range.second, names));
  return {Joined(out, Message(", ")), count.size() == 1};
}

}  // namespace msprobe
