// Statistics of any view of any bytes: the kernel of devices, run here, against the plain loop.
#include <cmath>
#include <vector>

#include "device/host_kernel.h"
#include "device/statistics.h"
#include "fuzz_file.h"
#include "fuzz_view.h"

namespace msprobe::fuzz {
namespace {

bool Near(double a, double b, double bound) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b || std::fabs(a - b) <= bound;
}

void CheckAsPlain(const Stats& kernel, const Stats& plain, DType type) {
  Check(kernel.count == plain.count, "count");
  Check(kernel.nan_count == plain.nan_count && kernel.inf_count == plain.inf_count, "NaN and infinities");
  Check(kernel.int_max == plain.int_max && kernel.int_min == plain.int_min, "extremes of integers");
  Check(kernel.uint_max == plain.uint_max && kernel.uint_min == plain.uint_min, "extremes of unsigned integers");
  // Their absolute values may be those of std::hypot, which differ by a unit from library to library.
  const double unit = type == DType::kComplex32 || type == DType::kComplex128 ? 0x1p-52 : 0;
  Check(Near(kernel.max, plain.max, unit * plain.max) && Near(kernel.min, plain.min, unit * plain.min), "extremes");
  Check(Near(kernel.norm, plain.norm, 1e-12 * plain.norm), "norm");
  const double root = std::sqrt(static_cast<double>(plain.count > 0 ? plain.count : 1));
  Check(plain.norm > 1e300 || Near(kernel.mean, plain.mean, 1e-12 * plain.norm / root), "mean");
}

}  // namespace
}  // namespace msprobe::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace msprobe;
  fuzz::View view;
  if (!fuzz::Describe(data, size, &view)) return 0;
  device::DeviceBatch batch;
  device::DeviceShape shape;
  const bool read = device::DescribeForKernel(view.tensor(), &batch.tensor[0], &shape);
  if (!read) {
    fuzz::Check(view.count == 0, "any view with elements can be read");
    return 0;
  }
  std::vector<device::DeviceTally> parts(static_cast<size_t>(shape.parts));
  batch.tensors = 1;
  batch.tensor[0].first_part = 0;
  batch.parts = parts.data();
  device::RunBatch(batch, shape.parts);
  Stats plain;
  fuzz::Check(ComputeStatsScalar(view.tensor(), &plain), "any view has statistics");
  fuzz::CheckAsPlain(device::StatsOfTallies(shape, parts), plain, view.dtype);
  return 0;
}
