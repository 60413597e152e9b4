#include "tensor/stats.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/parallel.h"
#include "tensor/layout.h"
#include "tensor/stats_kernels.h"

namespace msprobe {
namespace {

using stats::Kernel;
using stats::KernelTable;
using stats::Partial;

// Elements of a part: parts are summed apart and folded in order, so the result does not depend on the threads.
constexpr int64_t kPart = int64_t{1} << 18;
// Below this many elements a second thread costs more than it brings.
constexpr int64_t kThreadsFrom = int64_t{1} << 20;

const KernelTable* BestTable() {
  for (const KernelTable* table : {stats::Avx512Kernels(), stats::Avx2Kernels(), stats::NeonKernels()}) {
    if (table) return table;
  }
  return stats::ScalarKernels();
}

std::atomic<const KernelTable*>& ActiveTable() {
  static std::atomic<const KernelTable*> table{BestTable()};
  return table;
}

void Fold(const Partial& from, Partial* to) {
  to->max = std::max(to->max, from.max);
  to->min = std::min(to->min, from.min);
  to->sum += from.sum;
  to->squares += from.squares;
  to->int_max = std::max(to->int_max, from.int_max);
  to->int_min = std::min(to->int_min, from.int_min);
  to->uint_max = std::max(to->uint_max, from.uint_max);
  to->uint_min = std::min(to->uint_min, from.uint_min);
  to->nan_count += from.nan_count;
  to->inf_count += from.inf_count;
}

Partial RunPart(const Layout& layout, Kernel kernel, int64_t part) {
  Partial partial;
  const int64_t begin = part * kPart, end = std::min(begin + kPart, layout.count);
  LayoutWalker(layout).Walk(begin, end, [&](const char* p, size_t n) { kernel(p, n, &partial); });
  return partial;
}

Partial RunKernel(const Layout& layout, Kernel kernel) {
  Partial total;
  if (layout.contiguous() && layout.count <= kPart) {
    kernel(layout.data, static_cast<size_t>(layout.count), &total);
    return total;
  }
  const int64_t parts = (layout.count + kPart - 1) / kPart;
  if (layout.count < kThreadsFrom || ThreadCount() == 1) {
    for (int64_t i = 0; i < parts; ++i) Fold(RunPart(layout, kernel, i), &total);
    return total;
  }
  std::vector<Partial> partials(static_cast<size_t>(parts));
  std::vector<char> done(partials.size(), 0);
  // An interrupt stops the loop early; what it left is then done here, because a statistic is all or nothing.
  (void)ParallelFor(partials.size(), [&](size_t i) {
    partials[i] = RunPart(layout, kernel, static_cast<int64_t>(i));
    done[i] = 1;
    return OkStatus();
  });
  for (size_t i = 0; i < partials.size(); ++i) {
    if (!done[i]) partials[i] = RunPart(layout, kernel, static_cast<int64_t>(i));
    Fold(partials[i], &total);
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

double Norm(const Layout& layout, DType dtype, const Partial& p) {
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

void Finish(const Layout& layout, DType dtype, const Partial& p, Stats* out) {
  *out = {};
  out->count = layout.count * layout.repeats;
  if (out->count == 0) return;
  out->nan_count = p.nan_count * layout.repeats;
  out->inf_count = p.inf_count * layout.repeats;
  out->mean = p.sum / static_cast<double>(layout.count);
  out->norm = Norm(layout, dtype, p);
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

bool Compute(const TensorView& t, const KernelTable& table, bool scalar, Stats* out) {
  *out = {};
  Layout layout;
  if (!MakeLayout(t, Order::kMemory, &layout)) return false;
  const Kernel kernel = table.by_dtype[static_cast<size_t>(t.dtype)];
  Partial total;
  if (layout.count > 0) {
    if (scalar) {
      LayoutWalker(layout).Walk(0, layout.count, [&](const char* p, size_t n) { kernel(p, n, &total); });
    } else {
      total = RunKernel(layout, kernel);
    }
  }
  Finish(layout, t.dtype, total, out);
  return true;
}

}  // namespace

bool ComputeStats(const TensorView& t, Stats* out) {
  return Compute(t, *ActiveTable().load(std::memory_order_relaxed), false, out);
}

bool ComputeStatsScalar(const TensorView& t, Stats* out) { return Compute(t, *stats::ScalarKernels(), true, out); }

const char* StatsIsa() { return ActiveTable().load(std::memory_order_relaxed)->name; }

bool SetStatsIsa(const char* name) {
  for (const KernelTable* table :
       {stats::Avx512Kernels(), stats::Avx2Kernels(), stats::NeonKernels(), stats::ScalarKernels()}) {
    if (!table || std::strcmp(table->name, name) != 0) continue;
    ActiveTable().store(table, std::memory_order_relaxed);
    return true;
  }
  return false;
}

}  // namespace msprobe
