#include "weights/diff_units.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <optional>

#include "tensor/kernels/metrics.h"
#include "tensor/kernels/metrics_sources.h"
#include "tensor/kernels/stats.h"
#include "weights/ulp_loop.h"

namespace msprobe {
namespace {

constexpr int64_t kUnitElements = int64_t{1} << 20;

int64_t BoxCount(const std::vector<int64_t>& size) {
  int64_t count = 1;
  for (const int64_t n : size) count *= n;
  return count;
}

/// Cuts a box along its outermost dimensions into boxes of at most kUnitElements.
void CutBox(const BoxView& box, std::vector<BoxView>* out) {
  const int64_t count = BoxCount(box.size);
  size_t d = 0;
  while (d < box.size.size() && box.size[d] <= 1) ++d;
  if (count <= kUnitElements || d == box.size.size()) {
    out->push_back(box);
    return;
  }
  const int64_t row = count / box.size[d], rows = std::max<int64_t>(1, kUnitElements / row);
  for (int64_t at = 0; at < box.size[d]; at += rows) {
    BoxView part = box;
    part.begin[d] += at;
    part.size[d] = std::min(rows, box.size[d] - at);
    row > kUnitElements ? CutBox(part, out) : out->push_back(part);
  }
}

/// Where element `index` of a box lies.
const char* ElementOf(const WeightBlock& block, int64_t index) {
  int64_t offset = 0;
  for (size_t d = block.size.size(); d-- > 0; index /= block.size[d])
    offset += index % block.size[d] * block.strides[d];
  return static_cast<const char*>(block.data) + offset * static_cast<int64_t>(ElementSize(block.dtype));
}

double ValueOf(const WeightBlock& block, int64_t index) {
  double value = NAN;
  (void)metrics::ToDoubles(block.dtype, ElementOf(block, index), 1, &value);
  return value;
}

bool IsDense(const WeightBlock& block) {
  int64_t step = 1;
  for (size_t d = block.size.size(); d-- > 0; step *= block.size[d]) {
    if (block.size[d] != 1 && block.strides[d] != step) return false;
  }
  return true;
}

int64_t FirstOther(const char* a, const char* b, size_t bytes, size_t element) {
  if (std::memcmp(a, b, bytes) == 0) return -1;
  size_t at = 0;
  while (a[at] == b[at]) ++at;
  return static_cast<int64_t>(at / element);
}

/// The first element, in C order, whose bits differ; -1 where none does.
int64_t FirstDifference(const DiffUnit& unit) {
  const size_t element = ElementSize(unit.a.dtype), dims = unit.a.size.size();
  const int64_t count = BoxCount(unit.a.size);
  const auto bytes = static_cast<size_t>(count) * element;
  if (IsDense(unit.a) && IsDense(unit.b)) {
    return FirstOther(static_cast<const char*>(unit.a.data), static_cast<const char*>(unit.b.data), bytes, element);
  }
  const int64_t length = unit.a.size[dims - 1];
  const int64_t step_a = unit.a.strides[dims - 1], step_b = unit.b.strides[dims - 1];
  for (int64_t row = 0; row < count; row += length) {
    const char *a = ElementOf(unit.a, row), *b = ElementOf(unit.b, row);
    if (step_a == 1 && step_b == 1) {
      const int64_t at = FirstOther(a, b, static_cast<size_t>(length) * element, element);
      if (at >= 0) return row + at;
      continue;
    }
    for (int64_t i = 0; i < length; ++i) {
      const auto offset = [&](int64_t step) { return i * step * static_cast<int64_t>(element); };
      if (std::memcmp(a + offset(step_a), b + offset(step_b), element) != 0) return row + i;
    }
  }
  return -1;
}

/// A copy of a block with something added, as doubles.
struct Raised {
  std::vector<double> values;
  WeightBlock block;

  Raised(const WeightBlock& from, double plus) : block(from) {
    const int64_t count = BoxCount(from.size);
    values.resize(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) values[static_cast<size_t>(i)] = ValueOf(from, i) + plus;
    int64_t step = 1;
    for (size_t d = from.size.size(); d-- > 0; step *= from.size[d]) block.strides[d] = step;
    block.data = values.data();
    block.dtype = DType::kFloat64;
  }
};

void TakeMetrics(const TensorMetrics& m, UnitSums* out) {
  const auto n = static_cast<double>(m.count);
  out->identical = m.identical;
  out->equal = m.equal;
  out->differ = m.differ;
  out->squares_a = m.rms_target * m.rms_target * n;
  out->squares_b = m.rms_golden * m.rms_golden * n;
  out->squares_diff = m.euc_dist * m.euc_dist;
  out->max_abs = m.max_abs_err;
  out->max_rel = m.max_relative_err;
  if (m.loops.empty()) return;
  out->products = m.loops[0].at[0];
  out->max_ulp = m.loops[0].at[1];
  out->tolerance = m.loops[0].at[2];
  out->largest = m.loops[0].at[3];
  if (m.loops.size() > 1) out->excess = m.loops[1].at[0];
}

void TakeEqual(const DiffUnit& unit, UnitSums* out) {
  Stats stats;
  if (!ComputeStats(unit.a.view(), &stats)) return;
  out->equal = out->count;
  const double squares = std::isfinite(stats.norm) ? stats.norm * stats.norm : 0;
  out->products = out->squares_a = out->squares_b = squares;
  const double most = std::max(std::fabs(stats.max), std::fabs(stats.min));
  out->largest = std::isfinite(most) ? most : 0;
}

}  // namespace

std::vector<DiffUnit> CutUnits(const std::vector<WeightPair>& pairs) {
  struct Place {
    int file;
    const void* data;
    size_t pair;
  };
  std::vector<Place> order;
  for (size_t i = 0; i < pairs.size(); ++i) {
    if (!pairs[i].same_shape || pairs[i].a.blocks.empty()) continue;
    order.push_back({pairs[i].a.blocks[0].file, pairs[i].a.blocks[0].data, i});
  }
  std::stable_sort(order.begin(), order.end(), [](const Place& x, const Place& y) {
    return x.file != y.file ? x.file < y.file : std::less<>()(x.data, y.data);
  });
  std::vector<DiffUnit> units;
  std::vector<BoxView> boxes;
  for (const Place& place : order) {
    const WeightPair& pair = pairs[place.pair];
    for (const WeightBlock& a : pair.a.blocks) {
      for (const WeightBlock& b : pair.b.blocks) {
        BoxView both;
        if (!Intersect(a, b, &both)) continue;
        boxes.clear();
        CutBox(both, &boxes);
        for (const BoxView& box : boxes) units.push_back({place.pair, CutBlock(a, box), CutBlock(b, box)});
      }
    }
  }
  return units;
}

UnitSums MeasureUnit(const DiffUnit& unit, double plus_a, double plus_b) {
  UnitSums out;
  out.count = BoxCount(unit.a.size);
  const bool plain = plus_a == 0 && plus_b == 0;
  const bool same_type = unit.a.dtype == unit.b.dtype;
  if (plain && same_type) {
    out.first = FirstDifference(unit);
    if (out.first < 0) {
      TakeEqual(unit, &out);
      return out;
    }
  }
  std::optional<Raised> raised_a, raised_b;
  const WeightBlock& a = plus_a != 0 ? raised_a.emplace(unit.a, plus_a).block : unit.a;
  const WeightBlock& b = plus_b != 0 ? raised_b.emplace(unit.b, plus_b).block : unit.b;
  std::vector<const PairLoop*> loops{UlpLoop(unit.a.dtype, unit.b.dtype)};
  if (const PairLoop* excess = ExcessLoop(unit.a.dtype, unit.b.dtype)) loops.push_back(excess);
  const MetricsOptions options{.worst = 1, .threads = false, .release = {}, .loops = loops};
  const TensorMetrics metrics = CompareTensors(a.view(), b.view(), options);
  if (metrics.state != PairState::kCompared) {
    out.identical = false;
    return out;
  }
  TakeMetrics(metrics, &out);
  out.identical = out.identical && plain;
  if (!metrics.worst.empty()) {
    out.worst = metrics.worst[0].index;
    out.worst_abs = metrics.worst[0].abs_err;
    out.worst_a = metrics.worst[0].target;
    out.worst_b = metrics.worst[0].golden;
    if (out.first < 0) out.first = out.worst;  // of two types: bits say nothing
  }
  if (out.first >= 0) {
    out.first_a = ValueOf(a, out.first);
    out.first_b = ValueOf(b, out.first);
  }
  return out;
}

}  // namespace msprobe
