#include "monitor/tensor_summary.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/parallel.h"
#include "tensor/kernels/layout.h"
#include "tensor/kernels/stats_kernels.h"

namespace msprobe {
namespace {

// Below this a thread costs more than it brings.
constexpr int64_t kElementsOfThread = int64_t{1} << 19;

template <typename T, typename Magnitude>
int64_t CountRuns(const Layout& layout, double eps, Magnitude magnitude) {
  int64_t total = 0;
  LayoutWalker(layout).Walk(0, layout.count, [&](const char* p, size_t n) {
    int64_t found = 0;
    for (size_t i = 0; i < n; ++i) {
      T v;
      std::memcpy(&v, p + i * sizeof(T), sizeof(T));
      found += magnitude(v) < eps;
    }
    total += found;
  });
  return total * layout.repeats;
}

template <typename T>
int64_t CountIntegers(const Layout& layout, double eps) {
  return CountRuns<T>(layout, eps, [](T v) { return std::fabs(static_cast<double>(v)); });
}

int64_t CountOf(const Layout& layout, DType dtype, double eps) {
  switch (dtype) {
    case DType::kFloat32:
      // In the type of the elements, which is twice as fast: rounding the bound up keeps the answer the same.
      return CountRuns<float>(layout, eps, [](float v) { return static_cast<double>(std::fabs(v)); });
    case DType::kFloat64: return CountRuns<double>(layout, eps, [](double v) { return std::fabs(v); });
    case DType::kFloat16:
      return CountRuns<uint16_t>(layout, eps, [](uint16_t v) { return std::fabs(stats::HalfToFloat(v)); });
    case DType::kBFloat16:
      return CountRuns<uint16_t>(layout, eps, [](uint16_t v) { return std::fabs(stats::BFloatToFloat(v)); });
    case DType::kInt8: return CountIntegers<int8_t>(layout, eps);
    case DType::kInt16: return CountIntegers<int16_t>(layout, eps);
    case DType::kInt32: return CountIntegers<int32_t>(layout, eps);
    case DType::kInt64: return CountIntegers<int64_t>(layout, eps);
    case DType::kUInt8:
    case DType::kBool: return CountIntegers<uint8_t>(layout, eps);
    case DType::kUInt16: return CountIntegers<uint16_t>(layout, eps);
    case DType::kUInt32: return CountIntegers<uint32_t>(layout, eps);
    case DType::kUInt64: return CountIntegers<uint64_t>(layout, eps);
    case DType::kFloat8E4M3FN:
    case DType::kFloat8E5M2:
    case DType::kFloat8E4M3FNUZ:
    case DType::kFloat8E5M2FNUZ:
    case DType::kFloat8E8M0FNU:
      return CountRuns<uint8_t>(layout, eps, [dtype](uint8_t v) { return std::fabs(stats::Float8ToFloat(dtype, v)); });
    case DType::kComplex32:
    case DType::kComplex64:
    case DType::kComplex128:
    case DType::kUnknown: break;
  }
  return -1;
}

int64_t ElementsOf(const TensorView& t) {
  int64_t count = 1;
  for (int i = 0; i < t.ndim; ++i) count *= t.shape[i];
  return count;
}

void SummarizeOne(const TensorView& t, double eps, TensorSummary* out) {
  *out = {};
  out->readable = ComputeStats(t, &out->stats);
  if (eps >= 0 && out->readable) out->near_zero = CountNearZero(t, eps);
}

}  // namespace

int64_t CountNearZero(const TensorView& t, double eps) {
  Layout layout;
  if (!MakeLayout(t, Order::kMemory, &layout)) return -1;
  return layout.count > 0 ? CountOf(layout, t.dtype, eps) : 0;
}

void SummarizeTensors(std::span<const TensorView> tensors, double eps, int threads, TensorSummary* out) {
  int64_t elements = 0;
  for (const TensorView& t : tensors) elements += ElementsOf(t);
  const int64_t useful = std::min<int64_t>(threads, elements / kElementsOfThread);
  // Asked only where it matters: it looks at the environment and the processors, which takes microseconds.
  const auto groups = useful <= 1 ? 1 : static_cast<size_t>(std::min<int64_t>(useful, std::max(ThreadCount(), 1)));
  if (groups == 1 || tensors.size() == 1) {
    for (size_t i = 0; i < tensors.size(); ++i) SummarizeOne(tensors[i], eps, out + i);
    return;
  }
  // Neighbours of about the same number of elements for each thread.
  std::vector<size_t> ends;
  int64_t seen = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    seen += ElementsOf(tensors[i]);
    const auto due = static_cast<int64_t>(ends.size() + 1) * elements / static_cast<int64_t>(groups);
    if (seen >= due || i + 1 == tensors.size()) ends.push_back(i + 1);
  }
  std::vector<char> done(ends.size(), 0);
  const auto run = [&](size_t group) {
    for (size_t i = group == 0 ? 0 : ends[group - 1]; i < ends[group]; ++i) SummarizeOne(tensors[i], eps, out + i);
    done[group] = 1;
  };
  // An interrupt stops the loop early; what it left is then done here.
  (void)ParallelFor(ends.size(), [&](size_t group) {
    run(group);
    return OkStatus();
  });
  for (size_t group = 0; group < ends.size(); ++group) {
    if (!done[group]) run(group);
  }
}

}  // namespace msprobe
