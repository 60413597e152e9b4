#include "rollout/stages/qkv_order.h"

#include "base/text.h"
#include "weights/causes/weight_rows.h"
#include "weights/role_words.h"

namespace msprobe {
namespace {

/// Where each row of a tensor that is stored group by group lies in one that is not; empty where the heads do not say.
std::vector<size_t> PlainRows(const ModelFacts& facts, int64_t rows) {
  const int64_t heads = facts.heads;
  const int64_t size = facts.head_dim > 0 ? facts.head_dim : heads > 0 ? facts.hidden / heads : 0;
  int64_t groups = facts.groups > 0 ? facts.groups : heads;
  // A configuration may name groups that its model does not know.
  if (rows == 3 * heads * size) groups = heads;
  if (groups <= 0 || size <= 0 || heads % groups != 0 || (heads + 2 * groups) * size != rows) return {};
  const int64_t q = heads / groups * size;
  std::vector<size_t> out;
  for (int64_t g = 0; g < groups; ++g) {
    for (int64_t i = 0; i < q; ++i) out.push_back(static_cast<size_t>(g * q + i));
    for (const int64_t begin : {heads * size, (heads + groups) * size}) {
      for (int64_t i = 0; i < size; ++i) out.push_back(static_cast<size_t>(begin + g * size + i));
    }
  }
  return out;
}

bool IsOtherOrder(const ModelFacts& facts, const WeightPair& pair) {
  const DType type = CoarserType(pair.a.dtype, pair.b.dtype);
  const WeightRows a = RowsOfWeight(pair.a, type), b = RowsOfWeight(pair.b, type);
  const std::vector<size_t> plain = PlainRows(facts, a.rows);
  if (plain.empty() || a.rows != b.rows || a.columns != b.columns) return false;
  bool there = true, back = true;
  for (size_t i = 0; i < plain.size(); ++i) {
    there &= a.hashes[i] == b.hashes[plain[i]];
    back &= b.hashes[i] == a.hashes[plain[i]];
  }
  return there || back;
}

}  // namespace

size_t TakeOtherQkvOrder(const ModelFacts& facts, const std::vector<WeightPair>& pairs,
                         std::vector<WeightDiff>* diffs) {
  std::vector<size_t> found;
  for (size_t i = 0; i < pairs.size(); ++i) {
    const WeightPair& pair = pairs[i];
    if (pair.by >= MatchedBy::kStatistics || !pair.same_shape || !EndsWith(ParseWeightName(pair.b.name).what, "qkv"))
      continue;
    const bool other = IsOtherOrder(facts, pair), copy = (*diffs)[i].verdict <= WeightVerdict::kRounded;
    if (copy && !other) return 0;
    if (other && !copy) found.push_back(i);
  }
  for (const size_t i : found) {
    const bool same = pairs[i].a.dtype == pairs[i].b.dtype;
    (*diffs)[i].verdict = same ? WeightVerdict::kBitEqual : WeightVerdict::kRounded;
  }
  return found.size();
}

}  // namespace msprobe
