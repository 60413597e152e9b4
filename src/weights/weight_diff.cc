#include "weights/weight_diff.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/message.h"
#include "base/parallel.h"
#include "compare/values/thresholds.h"
#include "weights/diff_units.h"
#include "weights/roles.h"

namespace msprobe {
namespace {

struct PairSums {
  UnitSums sums;
  const DiffUnit* first = nullptr;
  const DiffUnit* worst = nullptr;
};

void AddUnit(const DiffUnit& unit, const UnitSums& from, PairSums* pair) {
  UnitSums& to = pair->sums;
  to.count += from.count;
  to.equal += from.equal;
  to.differ += from.differ;
  to.products += from.products;
  to.squares_a += from.squares_a;
  to.squares_b += from.squares_b;
  to.squares_diff += from.squares_diff;
  to.max_abs = std::max(to.max_abs, from.max_abs);
  to.max_rel = std::max(to.max_rel, from.max_rel);
  to.max_ulp = std::max(to.max_ulp, from.max_ulp);
  to.tolerance = std::max(to.tolerance, from.tolerance);
  to.largest = std::max(to.largest, from.largest);
  to.excess = std::max(to.excess, from.excess);
  to.identical &= from.identical;
  if (from.first >= 0 && !pair->first) {
    pair->first = &unit;
    to.first = from.first;
    to.first_a = from.first_a;
    to.first_b = from.first_b;
  }
  // Something that is no number on one side is the worst there is.
  const double apart = from.differ > 0 ? INFINITY : from.worst_abs;
  if (from.worst >= 0 && (!pair->worst || apart > to.worst_abs)) {
    pair->worst = &unit;
    to.worst = from.worst;
    to.worst_abs = apart;
    to.worst_a = from.worst_a;
    to.worst_b = from.worst_b;
  }
}

/// Place of element `index` of a block in the whole tensor of the checkpoint.
std::vector<int64_t> PlaceIn(const WeightTensor& t, const WeightBlock& block, int64_t index) {
  std::vector<int64_t> place = block.origin;
  const size_t lost = place.size() - block.size.size();
  for (size_t d = block.size.size(); d-- > 0; index /= block.size[d]) place[lost + d] += index % block.size[d];
  if (t.transposed && place.size() >= 2) std::swap(place[place.size() - 2], place.back());
  return place;
}

WeightPlace MakePlace(const Checkpoint& a, const Checkpoint& b, const WeightPair& pair, const DiffUnit& unit,
                      int64_t index) {
  WeightPlace out;
  out.a = PlaceIn(pair.a, unit.a, index);
  out.b = PlaceIn(pair.b, unit.b, index);
  out.file_a = unit.a.file;
  out.file_b = unit.b.file;
  out.part = !pair.a.part.empty() ? pair.a.part : pair.b.part;
  if (out.part.empty() && pair.source_a < a.tensors.size()) out.part = PartAt(a, pair.source_a, out.a);
  if (out.part.empty() && pair.source_b < b.tensors.size()) out.part = PartAt(b, pair.source_b, out.b);
  return out;
}

WeightVerdict Judge(const WeightPair& pair, const UnitSums& sums, const WeightDiff& diff) {
  if (!pair.same_shape) return WeightVerdict::kShape;
  if (sums.differ > 0) return WeightVerdict::kNotNumbers;
  if (sums.identical) return WeightVerdict::kBitEqual;
  if (sums.max_abs == 0) return WeightVerdict::kEqual;
  if (pair.a.dtype != pair.b.dtype && sums.max_ulp <= 0.5) return WeightVerdict::kRounded;
  // Before the weights were rounded to a coarse type they were apart as float32 is.
  const double before = DefaultThresholds().tolerance_float32 * sums.largest;
  const bool rounding = diff.error <= diff.allowed && sums.excess <= before;
  return rounding ? WeightVerdict::kRoundOff : WeightVerdict::kDiffers;
}

double OverLarger(double apart, double x, double y) {
  const double most = std::max(x, y);
  return apart == 0 ? 0 : most > 0 ? apart / most : INFINITY;
}

WeightDiff Conclude(const Checkpoint& a, const Checkpoint& b, const WeightPair& pair, const PairSums& all) {
  const UnitSums& sums = all.sums;
  WeightDiff out;
  out.count = sums.count;
  out.equal = sums.equal;
  out.l2 = std::sqrt(sums.squares_diff);
  out.norm_a = std::sqrt(sums.squares_a);
  out.norm_b = std::sqrt(sums.squares_b);
  out.max_abs = sums.max_abs;
  out.max_rel = sums.max_rel;
  out.max_ulp = sums.max_ulp;
  out.tolerance = sums.tolerance;
  out.allowed = std::max(DefaultThresholds().ToleranceOf(pair.a.dtype), DefaultThresholds().ToleranceOf(pair.b.dtype));
  out.error = std::max(OverLarger(out.l2, out.norm_a, out.norm_b), OverLarger(out.max_abs, sums.largest, 0));
  if (sums.identical || (out.norm_a == 0 && out.norm_b == 0)) {
    out.cosine = 1;
  } else if (out.norm_a > 0 && out.norm_b > 0) {
    out.cosine = sums.products / (out.norm_a * out.norm_b);
  }
  out.verdict = Judge(pair, sums, out);
  if (all.first) {
    out.first = MakePlace(a, b, pair, *all.first, sums.first);
    out.first->value_a = sums.first_a;
    out.first->value_b = sums.first_b;
  }
  if (all.worst) {
    out.worst = MakePlace(a, b, pair, *all.worst, sums.worst);
    out.worst->value_a = sums.worst_a;
    out.worst->value_b = sums.worst_b;
  }
  return out;
}

/// Of a file of A: pairs that lie in it, and those of them that are not bit-equal there.
struct FileShare {
  std::set<size_t> pairs, different;
};

/// The file of A in which everything differs, while all others are bit-equal.
std::optional<int> FileAlone(const std::map<int, FileShare>& files) {
  constexpr size_t kFewest = 4;
  std::optional<int> out;
  for (const auto& [file, share] : files) {
    if (share.different.empty()) continue;
    if (out || share.pairs.size() < kFewest || share.different.size() < share.pairs.size()) return std::nullopt;
    out = file;
  }
  return files.size() > 1 ? out : std::nullopt;
}

void Prefetch(const Checkpoint& c, const WeightBlock& block) {
  int64_t reach = 1;
  for (size_t d = 0; d < block.size.size(); ++d) reach += (block.size[d] - 1) * block.strides[d];
  c.WillNeed(block.file, block.data, static_cast<size_t>(reach) * ElementSize(block.dtype));
}

}  // namespace

std::string_view WeightVerdictText(WeightVerdict v) {
  switch (v) {
    case WeightVerdict::kBitEqual: return "bit-equal";
    case WeightVerdict::kEqual: return "equal";
    case WeightVerdict::kRounded: return "rounded";
    case WeightVerdict::kRoundOff: return "round-off";
    case WeightVerdict::kDiffers: return "differs";
    case WeightVerdict::kNotNumbers: return "not finite";
    case WeightVerdict::kShape: return "shape";
  }
  return "";
}

StatusOr<std::vector<WeightDiff>> CompareWeights(const Checkpoint& a, const Checkpoint& b,
                                                 const std::vector<WeightPair>& pairs) {
  const std::vector<DiffUnit> units = CutUnits(pairs);
  std::vector<PairSums> sums(pairs.size());
  std::map<int, FileShare> files;
  const auto ahead = static_cast<size_t>(ThreadCount()) * 16;
  constexpr size_t kWindow = 64;
  MSP_RETURN_IF_ERROR(ParallelOrdered<UnitSums>(
      units.size(), kWindow,
      [&](size_t i) -> StatusOr<UnitSums> {
        if (i + ahead < units.size()) {
          Prefetch(a, units[i + ahead].a);
          Prefetch(b, units[i + ahead].b);
        }
        const WeightPair& pair = pairs[units[i].pair];
        const UnitSums out = MeasureUnit(units[i], pair.a.plus, pair.b.plus);
        a.Release(units[i].a);
        b.Release(units[i].b);
        return out;
      },
      [&](size_t i, UnitSums&& out) {
        AddUnit(units[i], out, &sums[units[i].pair]);
        FileShare& share = files[units[i].a.file];
        share.pairs.insert(units[i].pair);
        if (!out.identical) share.different.insert(units[i].pair);
        return OkStatus();
      }));
  std::vector<WeightDiff> diffs;
  for (size_t i = 0; i < pairs.size(); ++i) {
    if (pairs[i].same_shape && sums[i].sums.count != pairs[i].a.elements()) {
      return InternalError(Msg("{} could not be compared as a whole: please report this", pairs[i].a.label()));
    }
    diffs.push_back(Conclude(a, b, pairs[i], sums[i]));
  }
  const std::optional<int> alone = FileAlone(files);
  const auto any = [&](auto... verdicts) {
    return std::any_of(files[*alone].different.begin(), files[*alone].different.end(),
                       [&](size_t i) { return ((diffs[i].verdict == verdicts) || ...); });
  };
  // A file in another type is not one of another step.
  if (alone && !any(WeightVerdict::kEqual, WeightVerdict::kRounded)) {
    for (const size_t i : files[*alone].different) {
      diffs[i].file_alone = alone;
      if (diffs[i].verdict == WeightVerdict::kRoundOff) diffs[i].verdict = WeightVerdict::kDiffers;
    }
  }
  return diffs;
}

}  // namespace msprobe
