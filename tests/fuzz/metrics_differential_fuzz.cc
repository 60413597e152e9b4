// Metrics of any two views of any bytes: each instruction set gives the same bits, and what the plain loop says.
#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "fuzz_file.h"
#include "tensor/kernels/metrics_plain.h"

namespace msprobe::fuzz {
namespace {

constexpr int64_t kMostElements = 20000;

struct View {
  DType dtype = DType::kUnknown;
  std::vector<int64_t> shape, strides;
  std::vector<char> memory;
  int64_t begin = 0;
  TensorView tensor() const {
    return {memory.data() + begin * static_cast<int64_t>(ElementSize(dtype)), dtype, static_cast<int>(shape.size()),
            shape.data(), strides.data()};
  }

  /// False when the strides lead out of `bytes`.
  bool Take(const uint8_t* data, size_t bytes, int64_t count) {
    int64_t low = 0, high = 0;
    for (size_t d = 0; d < shape.size(); ++d) (strides[d] < 0 ? low : high) += (shape[d] - 1) * strides[d];
    const int64_t available = static_cast<int64_t>(bytes / ElementSize(dtype));
    if (count > 0 && high - low + 1 > available) return false;
    begin = count > 0 ? -low : 0;
    memory.assign(data, data + static_cast<size_t>(available) * ElementSize(dtype));
    return true;
  }
};

/// Two types, a number of dimensions, then length and both strides of each; the bytes that follow belong to the target
/// and, from half of them on, to the golden tensor.
bool Describe(const uint8_t* data, size_t size, View* target, View* golden) {
  if (size < 3) return false;
  target->dtype = static_cast<DType>(data[0] % static_cast<int>(DType::kUnknown));
  golden->dtype = static_cast<DType>(data[1] % static_cast<int>(DType::kUnknown));
  const size_t ndim = data[2] % 5, head = 3 + 3 * ndim;
  if (size < head) return false;
  int64_t count = 1;
  for (size_t d = 0; d < ndim; ++d) {
    const uint8_t* at = data + 3 + 3 * d;
    count *= at[0];
    if (count > kMostElements) return false;
    target->shape.push_back(at[0]);
    golden->shape.push_back(at[0]);
    target->strides.push_back(static_cast<int8_t>(at[1]));
    golden->strides.push_back(static_cast<int8_t>(at[2]));
  }
  const size_t half = (size - head) / 2;
  return target->Take(data + head, half, count) && golden->Take(data + head + half, half, count);
}

bool SameBits(double a, double b) { return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b); }

bool Near(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b || std::fabs(a - b) <= 1e-11 * std::max(std::fabs(a), std::fabs(b));
}

void CheckCounts(const TensorMetrics& a, const TensorMetrics& b) {
  Check(a.cosine_state == b.cosine_state, "kind of cosine");
  Check(a.count == b.count && a.equal == b.equal && a.identical == b.identical, "equal elements");
  Check(a.below_thousandth == b.below_thousandth, "elements below 0.001");
  Check(a.below_five_thousandths == b.below_five_thousandths, "elements below 0.005");
  Check(a.differ == b.differ, "elements that are not finite on one side");
  for (const auto side : {&TensorMetrics::target, &TensorMetrics::golden}) {
    const NonFinite &x = a.*side, &y = b.*side;
    Check(x.nan == y.nan && x.plus_inf == y.plus_inf && x.minus_inf == y.minus_inf, "kinds of what is not finite");
  }
}

void CheckSame(const TensorMetrics& a, const TensorMetrics& b) {
  CheckCounts(a, b);
  Check(SameBits(a.cosine, b.cosine) || (std::isnan(a.cosine) && std::isnan(b.cosine)), "cosine");
  Check(SameBits(a.euc_dist, b.euc_dist), "distance");
  Check(SameBits(a.max_abs_err, b.max_abs_err) && SameBits(a.max_relative_err, b.max_relative_err), "errors");
  Check(SameBits(a.rms_diff, b.rms_diff) && SameBits(a.rms_golden, b.rms_golden), "means");
  Check(a.worst.size() == b.worst.size(), "worst elements");
  for (size_t i = 0; i < a.worst.size(); ++i) Check(a.worst[i].index == b.worst[i].index, "worst element");
}

void CheckPlain(const TensorMetrics& got, const TensorMetrics& plain) {
  CheckCounts(got, plain);
  Check(got.cosine_state != CosineState::kNumber || std::fabs(got.cosine - plain.cosine) <= 1e-12, "cosine, plain");
  Check(Near(got.euc_dist, plain.euc_dist), "distance, plain");
  Check(got.scalar || Near(got.max_abs_err, plain.max_abs_err), "absolute error, plain");
  Check(Near(got.max_relative_err, plain.max_relative_err), "relative error, plain");
  for (size_t i = 0; i < got.worst.size(); ++i)
    Check(i >= plain.worst.size() || got.worst[i].abs_err <= plain.worst[i].abs_err * (1 + 1e-11), "worst, plain");
}

}  // namespace
}  // namespace msprobe::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace msprobe;
  fuzz::View target, golden;
  if (!fuzz::Describe(data, size, &target, &golden)) return 0;
  MetricsOptions options;
  options.worst = 3;
  fuzz::Check(SetMetricsIsa("scalar"), "there is a plain kernel");
  const TensorMetrics want = CompareTensors(target.tensor(), golden.tensor(), options);
  if (want.state == PairState::kEmpty) return 0;
  fuzz::Check(want.state == PairState::kCompared, "any two views of one shape are compared");
  for (const char* isa : {"avx2", "avx512", "neon"}) {
    if (!SetMetricsIsa(isa)) continue;
    fuzz::CheckSame(CompareTensors(target.tensor(), golden.tensor(), options), want);
  }
  fuzz::CheckPlain(want, plain::Compare(target.tensor(), golden.tensor()));
  return 0;
}
