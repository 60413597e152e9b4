#include "weights/causes/weight_causes.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "tensor/kernels/finfo.h"
#include "weights/causes/row_order.h"
#include "weights/causes/weight_rows.h"

namespace msprobe {
namespace {

constexpr int64_t kMostValues = int64_t{1} << 24;
// That differ; of more, no single one is the cause, and to hash them takes minutes.
constexpr size_t kMostPairs = 256;
constexpr int64_t kMostElements = int64_t{1} << 26;
constexpr size_t kFewToTell = 4;  // values that differ from each other

bool HasFewDigits(double v, int digits) {
  const int spare = 53 - digits;
  return (std::bit_cast<uint64_t>(v) & ((uint64_t{1} << spare) - 1)) == 0;
}

/// Whether `rounded` is `whole`, rounded to a type and back.
bool IsRoundedTo(DType type, const WeightTensor& rounded, const WeightTensor& whole) {
  const std::vector<double> values = ValuesOfWeight(rounded, kMostValues);
  const int digits = InfoOf(type).digits;
  const bool few = std::all_of(values.begin(), values.end(), [&](double v) { return HasFewDigits(v, digits); });
  return !values.empty() && few && RowsOfWeight(rounded, type).all == RowsOfWeight(whole, type).all;
}

Message RoundedText(const WeightPair& pair) {
  const DType type = pair.a.dtype;
  if (type != pair.b.dtype || InfoOf(type).digits < InfoOf(DType::kFloat32).digits) return {};
  for (const DType coarse : {DType::kBFloat16, DType::kFloat16}) {
    if (IsRoundedTo(coarse, pair.a, pair.b)) return Msg("A is B rounded to {} and back", DTypeName(coarse));
    if (IsRoundedTo(coarse, pair.b, pair.a)) return Msg("B is A rounded to {} and back", DTypeName(coarse));
  }
  return {};
}

bool TellsApart(const WeightRows& rows) {
  return std::set<uint64_t>(rows.hashes.begin(), rows.hashes.end()).size() >=
         std::min(kFewToTell, static_cast<size_t>(rows.rows));
}

/// From the two sides of a pair alone.
Message AloneText(const WeightPair& pair, int64_t head_dim) {
  if (IsAllZero(pair.a)) return Msg("A is all zeros: nothing was written there");
  if (IsAllZero(pair.b)) return Msg("B is all zeros: nothing was written there");
  const DType type = CoarserType(pair.a.dtype, pair.b.dtype);
  const WeightRows a = RowsOfWeight(pair.a, type), b = RowsOfWeight(pair.b, type);
  if (pair.a.shape.size() == 2 && a.rows == a.columns && TellsApart(a) &&
      ColumnsOfWeight(pair.a, type).hashes == b.hashes) {
    return Msg("one side is the other transposed");
  }
  if (const Message order = OrderOf(b, a, head_dim); !order.empty()) return Msg("A has the rows of B: {}", order);
  if (pair.a.shape.size() >= 2) {
    const WeightRows of_a = ColumnsOfWeight(pair.a, type), of_b = ColumnsOfWeight(pair.b, type);
    const Message order = of_a.rows > 0 ? OrderOf(of_b, of_a, head_dim) : Message();
    if (!order.empty()) return Msg("A has the columns of B: {}", order);
  }
  return RoundedText(pair);
}

/// Pairs that differ, and what each holds.
class PairCauses {
 public:
  PairCauses(const std::vector<WeightPair>& pairs, const std::vector<WeightDiff>& diffs, std::vector<Message>* out)
      : pairs_(pairs), out_(*out) {
    for (size_t i = 0; i < pairs.size(); ++i) {
      const bool differs = diffs[i].verdict == WeightVerdict::kDiffers || diffs[i].verdict == WeightVerdict::kRoundOff;
      if (!pairs[i].same_shape || !differs || pairs[i].a.elements() < 2) continue;
      places_.push_back(i);
      elements_ += pairs[i].a.elements();
    }
  }

  void Run(int64_t head_dim) {
    if (places_.size() > kMostPairs || elements_ > kMostElements) return;
    Others();
    Parts();
    for (const size_t i : places_) {
      if (out_[i].empty()) out_[i] = AloneText(pairs_[i], head_dim);
    }
  }

 private:
  using Content = std::pair<std::vector<int64_t>, uint64_t>;

  /// What A has here, B has at another place.
  void Others() {
    std::map<Content, size_t> in_b;
    for (const size_t i : places_) {
      const WeightRows rows = RowsOfWeight(pairs_[i].b, pairs_[i].b.dtype);
      if (TellsApart(rows)) in_b.emplace(Content{pairs_[i].b.shape, rows.all}, i);
    }
    std::map<size_t, size_t> found;
    for (const size_t i : places_) {
      const auto at = in_b.find({pairs_[i].a.shape, RowsOfWeight(pairs_[i].a, pairs_[i].b.dtype).all});
      if (at != in_b.end() && at->second != i) found[i] = at->second;
    }
    for (const auto& [i, other] : found) {
      const auto back = found.find(other);
      const bool both = back != found.end() && back->second == i;
      const std::string label = pairs_[other].b.label();
      out_[i] = both ? Msg("exchanged with {}", label) : Msg("A has what B has in {}", label);
    }
  }

  /// Parts of one fused weight whose rows, taken together, are the same on both sides.
  void Parts() {
    std::map<size_t, std::vector<size_t>> of_a, of_b;
    for (const size_t i : places_) {
      if (!pairs_[i].a.part.empty()) of_a[pairs_[i].source_a].push_back(i);
      if (!pairs_[i].b.part.empty()) of_b[pairs_[i].source_b].push_back(i);
    }
    for (const auto* fused : {&of_a, &of_b}) {
      for (const auto& [source, members] : *fused) {
        if (members.size() > 1 && SameRows(members)) Tell(members, fused == &of_a);
      }
    }
  }

  bool SameRows(const std::vector<size_t>& members) const {
    std::vector<uint64_t> a, b;
    for (const size_t i : members) {
      const DType type = CoarserType(pairs_[i].a.dtype, pairs_[i].b.dtype);
      const WeightRows rows_a = RowsOfWeight(pairs_[i].a, type), rows_b = RowsOfWeight(pairs_[i].b, type);
      a.insert(a.end(), rows_a.hashes.begin(), rows_a.hashes.end());
      b.insert(b.end(), rows_b.hashes.begin(), rows_b.hashes.end());
    }
    std::sort(a.begin(), a.end());
    std::sort(b.begin(), b.end());
    return a == b;
  }

  void Tell(const std::vector<size_t>& members, bool of_a) {
    std::string parts;
    for (const size_t i : members) {
      parts += (parts.empty() ? "" : ", ") + (of_a ? pairs_[i].a.part : pairs_[i].b.part);
    }
    for (const size_t i : members) {
      if (out_[i].empty())
        out_[i] = Msg("the rows of {} of the fused weight are the same together, in another order", parts);
    }
  }

  const std::vector<WeightPair>& pairs_;
  std::vector<Message>& out_;
  std::vector<size_t> places_;
  int64_t elements_ = 0;
};

}  // namespace

std::vector<Message> CausesOf(const Checkpoint& a, const std::vector<WeightPair>& pairs,
                              const std::vector<WeightDiff>& diffs) {
  std::vector<Message> out(pairs.size());
  const ModelFacts& facts = a.facts;
  const int64_t head_dim = facts.head_dim > 0 ? facts.head_dim : facts.heads > 0 ? facts.hidden / facts.heads : 0;
  PairCauses(pairs, diffs, &out).Run(head_dim);
  return out;
}

}  // namespace msprobe
