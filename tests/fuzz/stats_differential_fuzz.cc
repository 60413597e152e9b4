// Statistics of any view of any bytes: each instruction set against the plain loop, and the checksum against a plain
// copy.
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "fuzz_file.h"
#include "fuzz_view.h"
#include "tensor/kernels/crc32.h"
#include "tensor/kernels/stats.h"

namespace msprobe::fuzz {
namespace {

bool Close(double a, double b, double scale) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (std::isinf(a) || std::isinf(b)) return a == b;
  return std::fabs(a - b) <= 2e-6 * scale;
}

void CheckSame(const Stats& fast, const Stats& plain) {
  Check(fast.count == plain.count, "count");
  Check(fast.nan_count == plain.nan_count && fast.inf_count == plain.inf_count, "NaN and infinities");
  Check(fast.int_max == plain.int_max && fast.int_min == plain.int_min, "extremes of integers");
  Check(fast.uint_max == plain.uint_max && fast.uint_min == plain.uint_min, "extremes of unsigned integers");
  Check(Close(fast.max, plain.max, 0) && Close(fast.min, plain.min, 0), "extremes");
  Check(Close(fast.norm, plain.norm, plain.norm), "norm");
  const double root = std::sqrt(static_cast<double>(plain.count > 0 ? plain.count : 1));
  // A double sum may overflow in one order and not in another; only the norm is held to be finite then.
  const bool huge = plain.norm > 1e300;
  Check(huge || Close(fast.mean, plain.mean, plain.norm / root), "mean");
}

std::string PlainCopy(const View& v) {
  std::string copy;
  const size_t element = ElementSize(v.dtype);
  const char* base = v.memory.data() + v.begin * static_cast<int64_t>(element);
  for (int64_t i = 0; i < v.count; ++i) {
    int64_t rest = i, offset = 0;
    for (size_t d = v.shape.size(); d-- > 0; rest /= v.shape[d]) offset += rest % v.shape[d] * v.strides[d];
    copy.append(base + offset * static_cast<int64_t>(element), element);
  }
  return copy;
}

}  // namespace
}  // namespace msprobe::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace msprobe;
  fuzz::View view;
  if (!fuzz::Describe(data, size, &view)) return 0;
  const TensorView tensor = view.tensor();
  Stats plain, fast;
  fuzz::Check(ComputeStatsScalar(tensor, &plain), "any view has statistics");
  for (const char* isa : {"scalar", "avx2", "avx512", "neon"}) {
    if (!SetStatsIsa(isa)) continue;
    fuzz::Check(ComputeStats(tensor, &fast), "any view has statistics");
    fuzz::CheckSame(fast, plain);
  }
  const std::string copy = fuzz::PlainCopy(view);
  const uint32_t crc = Crc32(copy.data(), copy.size());
  fuzz::Check(ComputeCrc32(tensor) == crc, "checksum of a view and of its copy");
  Stats fused;
  uint32_t fused_crc = 0;
  fuzz::Check(ComputeStatsAndCrc32(tensor, &fused, &fused_crc) && fused_crc == crc, "checksum beside statistics");
  fuzz::CheckSame(fused, plain);
  return 0;
}
