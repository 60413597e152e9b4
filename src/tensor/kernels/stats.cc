#include "tensor/kernels/stats.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/parallel.h"
#include "tensor/kernels/crc32.h"
#include "tensor/kernels/finfo.h"
#include "tensor/kernels/layout.h"
#include "tensor/kernels/stats_kernels.h"

namespace msprobe {
namespace {

using stats::Found;
using stats::Kernel;
using stats::kSides;
using stats::Partial;
using stats::SidesKernel;
using stats::StatsTable;

// Elements of a part: parts are summed apart and folded in order, so the result does not depend on the threads.
constexpr int64_t kPart = int64_t{1} << 18;
// Elements that a kernel takes at a time, so that a checksum of the same run still finds it in the cache.
constexpr int64_t kRun = int64_t{1} << 12, kRunOfSide = kRun / 2;
// Fewer elements than this lie in the cache of a core, where runs side by side are no faster.
constexpr int64_t kSideBySide = int64_t{1} << 15;
// A thread that has fewer parts than this to read costs more than it brings: the training waits while it starts.
constexpr int64_t kPartsOfThread = 8;

const StatsTable* BestTable() {
  for (const StatsTable* table : {stats::Avx512Kernels(), stats::Avx2Kernels(), stats::NeonKernels()}) {
    if (table) return table;
  }
  return stats::ScalarKernels();
}

std::atomic<const StatsTable*>& ActiveTable() {
  static std::atomic<const StatsTable*> table{BestTable()};
  return table;
}

double FoldLanes(const double* lanes) {
  double half[stats::kLanes / 2];
  for (size_t i = 0; i < stats::kLanes / 2; ++i) half[i] = lanes[i] + lanes[i + stats::kLanes / 2];
  for (size_t width = stats::kLanes / 4; width > 0; width /= 2) {
    for (size_t i = 0; i < width; ++i) half[i] += half[i + width];
  }
  return half[0];
}

void Fold(const Partial& from, Found* to) {
  to->max = std::max(to->max, from.max);
  to->min = std::min(to->min, from.min);
  to->sum += from.sum + FoldLanes(from.lane_sums);
  to->squares += from.squares + FoldLanes(from.lane_squares);
  to->int_max = std::max(to->int_max, from.int_max);
  to->int_min = std::min(to->int_min, from.int_min);
  to->uint_max = std::max(to->uint_max, from.uint_max);
  to->uint_min = std::min(to->uint_min, from.uint_min);
  to->nan_count += from.nan_count;
  to->inf_count += from.inf_count;
}

/// How the elements of a dtype are read.
struct Kernels {
  Kernel one;
  SidesKernel sides;  // may be null
};

Kernels KernelsFor(const StatsTable& table, DType dtype) {
  return {table.by_dtype[static_cast<size_t>(dtype)], table.sides[static_cast<size_t>(dtype)]};
}

/// What is found in one part of a tensor; the checksum only where it is asked for, which needs elements in C order.
struct Part {
  Partial partial;
  uint32_t crc = 0;
};

/// What kernels find in runs of contiguous elements, and the checksum of these.
class PartReader {
 public:
  PartReader(const Layout& layout, const Kernels& kernels, bool crc, Part* part)
      : layout_(layout), kernels_(kernels), crc_(crc), part_(*part) {}

  void Read(int64_t begin, int64_t end) {
    if (kernels_.sides != nullptr && end - begin >= kSideBySide) begin = Sides(begin, end);
    for (int64_t at = begin; at < end; at += kRun) {
      const int64_t n = std::min(kRun, end - at);
      kernels_.one(At(at), static_cast<size_t>(n), &part_.partial);
      AddCrc(at, n, at + kRun < end, &part_.crc);
    }
  }

 private:
  const char* At(int64_t i) const { return layout_.data + static_cast<size_t>(i) * layout_.element; }
  size_t Bytes(int64_t n) const { return static_cast<size_t>(n) * layout_.element; }

  void AddCrc(int64_t at, int64_t n, bool more, uint32_t* crc) const {
    // The next run comes from memory while this one is folded.
    if (crc_) *crc = crc32::Update(At(at), Bytes(n), *crc, more ? Bytes(n) : 0);
  }

  /// Runs of each quarter beside those of the others; gives where they end.
  int64_t Sides(int64_t begin, int64_t end) {
    constexpr auto kCount = static_cast<int64_t>(kSides);
    const int64_t length = (end - begin) / kRunOfSide / kCount * kRunOfSide;
    uint32_t crcs[kSides] = {};
    for (int64_t i = 0; i < length; i += kRunOfSide) {
      const void* runs[kSides];
      for (int64_t side = 0; side < kCount; ++side) runs[side] = At(begin + side * length + i);
      kernels_.sides(runs, static_cast<size_t>(kRunOfSide), &part_.partial);
      const bool more = i + kRunOfSide < length;
      for (int64_t side = 0; side < kCount; ++side) AddCrc(begin + side * length + i, kRunOfSide, more, &crcs[side]);
    }
    const uint32_t power = crc_ ? crc32::PowerOfX(8 * Bytes(length)) : 0;
    for (const uint32_t crc : crcs) part_.crc = crc32::Multiply(part_.crc, power) ^ crc;
    return begin + kCount * length;
  }

  const Layout& layout_;
  const Kernels& kernels_;
  const bool crc_;
  Part& part_;
};

void RunPart(const Layout& layout, const Kernels& kernels, int64_t begin, int64_t end, bool crc, Part* part) {
  if (layout.contiguous()) return PartReader(layout, kernels, crc, part).Read(begin, end);
  LayoutWalker(layout).Walk(begin, end, [&](const char* p, size_t n) { kernels.one(p, n, &part->partial); });
}

struct Total {
  Found found;
  uint32_t crc = 0;
};

Total RunKernel(const Layout& layout, const Kernels& kernels, bool crc) {
  const int64_t count = static_cast<int64_t>((layout.count + kPart - 1) / kPart);
  const auto run = [&](int64_t i, Part* part) {
    RunPart(layout, kernels, i * kPart, std::min((i + 1) * kPart, layout.count), crc, part);
  };
  Total total;
  const auto fold = [&](int64_t i, const Part& part) {
    Fold(part.partial, &total.found);
    const int64_t elements = std::min(kPart, layout.count - i * kPart);
    if (crc)
      total.crc =
          i == 0 ? part.crc : CombineCrc32(total.crc, part.crc, static_cast<uint64_t>(elements) * layout.element);
  };
  if (count < 2 * kPartsOfThread || ThreadCount() == 1) {
    for (int64_t i = 0; i < count; ++i) {
      Part part;
      run(i, &part);
      fold(i, part);
    }
    return total;
  }
  std::vector<Part> parts(static_cast<size_t>(count));
  std::vector<char> done(parts.size(), 0);
  // An interrupt stops the loop early; what it left is then done here, because a statistic is all or nothing.
  (void)ParallelFor(parts.size() / kPartsOfThread, [&](size_t group) {
    const bool last = group + 1 == parts.size() / kPartsOfThread;
    for (size_t i = group * kPartsOfThread; i < (last ? parts.size() : (group + 1) * kPartsOfThread); ++i) {
      run(static_cast<int64_t>(i), &parts[i]);
      done[i] = 1;
    }
    return OkStatus();
  });
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!done[i]) run(static_cast<int64_t>(i), &parts[i]);
    fold(static_cast<int64_t>(i), parts[i]);
  }
  return total;
}

/// Sum of (x * scale)^2, for values whose squares leave the range of double.
template <typename T>
double ScaledSquares(const Layout& layout, double scale) {
  double total = 0;
  LayoutWalker(layout).Walk(0, layout.count, [&](const char* p, size_t n) {
    for (size_t i = 0; i < n * (layout.element / sizeof(T)); ++i) {
      T v;
      std::memcpy(&v, p + i * sizeof(T), sizeof(T));
      total += (v * scale) * (v * scale);
    }
  });
  return total;
}

double Norm(const Layout& layout, DType dtype, const Found& p) {
  const double repeats = static_cast<double>(layout.repeats);
  const bool wide = dtype == DType::kFloat64 || dtype == DType::kComplex128;
  const double most = std::max(std::fabs(p.max), std::fabs(p.min));
  if (wide && p.nan_count == 0 && p.inf_count == 0 && most > 0 && !(p.squares > 1e-280 && p.squares < 1e300)) {
    const int exponent = std::ilogb(most);
    // Two steps, because the scale of a denormal is itself out of range.
    const double scale = std::ldexp(1.0, std::min(-exponent, 1023));
    return std::ldexp(std::sqrt(ScaledSquares<double>(layout, scale) * repeats), std::max(exponent, -1023));
  }
  return std::sqrt(p.squares * repeats);
}

void Finish(const Layout& layout, DType dtype, const Found& p, Stats* out) {
  stats::FinishStats(dtype, p, layout.count, layout.repeats, layout.count > 0 ? Norm(layout, dtype, p) : 0, out);
}

const StatsTable& Active() { return *ActiveTable().load(std::memory_order_relaxed); }

}  // namespace

void stats::FinishStats(DType dtype, const Found& p, int64_t count, int64_t repeats, double norm, Stats* out) {
  *out = {};
  out->count = count * repeats;
  if (out->count == 0) return;
  out->nan_count = p.nan_count * repeats;
  out->inf_count = p.inf_count * repeats;
  out->mean = p.sum / static_cast<double>(count);
  out->norm = norm;
  if (IsInteger(dtype)) {
    const bool is_signed = p.int_max >= p.int_min;
    out->int_max = is_signed ? p.int_max : 0;
    out->int_min = is_signed ? p.int_min : 0;
    out->uint_max = is_signed ? 0 : p.uint_max;
    out->uint_min = is_signed ? 0 : p.uint_min;
    return;
  }
  out->max = p.max;
  out->min = p.min;
  if (p.nan_count > 0) out->max = out->min = out->mean = out->norm = std::nan("");
}

bool ComputeStats(const TensorView& t, Stats* out) {
  *out = {};
  Layout layout;
  if (!MakeLayout(t, Order::kMemory, &layout)) return false;
  Total total;
  if (layout.count > 0) total = RunKernel(layout, KernelsFor(Active(), t.dtype), false);
  Finish(layout, t.dtype, total.found, out);
  return true;
}

bool ComputeStatsAndCrc32(const TensorView& t, Stats* out, uint32_t* crc) {
  *out = {};
  Layout layout;
  if (!MakeLayout(t, Order::kLogical, &layout) || !layout.contiguous() || layout.repeats != 1) {
    *crc = ComputeCrc32(t);
    return ComputeStats(t, out);
  }
  Total total;
  if (layout.count > 0) total = RunKernel(layout, KernelsFor(Active(), t.dtype), true);
  *crc = total.crc;
  Finish(layout, t.dtype, total.found, out);
  return true;
}

bool ComputeStatsScalar(const TensorView& t, Stats* out) {
  *out = {};
  Layout layout;
  if (!MakeLayout(t, Order::kMemory, &layout)) return false;
  Partial total;
  const Kernel kernel = KernelsFor(*stats::ScalarKernels(), t.dtype).one;
  if (layout.count > 0) {
    LayoutWalker(layout).Walk(0, layout.count, [&](const char* p, size_t n) { kernel(p, n, &total); });
  }
  Finish(layout, t.dtype, total, out);
  return true;
}

double OverflowMargin(DType dtype, const Stats& stats) {
  if (dtype != DType::kFloat16 && dtype != DType::kBFloat16) return 0;
  const double largest = InfoOf(dtype).largest;
  const double most = std::max(std::fabs(stats.max), std::fabs(stats.min));
  // Not finite: a NaN compares false.
  if (stats.nan_count + stats.inf_count > 0 || !(most * kNearOverflow >= largest)) return 0;
  return largest / most;
}

const char* StatsIsa() { return Active().name; }

bool SetStatsIsa(const char* name) {
  for (const StatsTable* table :
       {stats::Avx512Kernels(), stats::Avx2Kernels(), stats::NeonKernels(), stats::ScalarKernels()}) {
    if (!table || std::strcmp(table->name, name) != 0) continue;
    ActiveTable().store(table, std::memory_order_relaxed);
    return true;
  }
  return false;
}

}  // namespace msprobe
