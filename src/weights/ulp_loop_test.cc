#include "weights/ulp_loop.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "tensor/kernels/metrics.h"
#include "tensor/kernels/metrics_sources.h"

namespace msprobe {
namespace {

struct Type {
  DType dtype;
  int mantissa, least;  // bits, exponent of the smallest normal number
  uint64_t infinity;
};
constexpr Type kTypes[] = {{DType::kFloat32, 23, -126, 0x7F800000},
                           {DType::kBFloat16, 7, -126, 0x7F80},
                           {DType::kFloat16, 10, -14, 0x7C00},
                           {DType::kFloat64, 52, -1022, 0x7FF0000000000000}};

/// Neighbours of other elements, any bits, zeros of both signs, subnormal, largest, NaN and infinite ones.
std::vector<char> Elements(const Type& type, size_t n, unsigned seed, const std::vector<char>* near) {
  std::mt19937_64 rng(seed);
  const size_t size = ElementSize(type.dtype);
  const uint64_t sign = uint64_t{1} << (8 * size - 1), infinity = type.infinity;
  std::vector<char> out(n * size);
  for (size_t i = 0; i < n; ++i) {
    uint64_t bits = rng();
    if (near) {
      std::memcpy(&bits, near->data() + i * size, size);
      bits += rng() % 5;
    }
    const uint64_t special[] = {0, sign, 1, sign | 3, infinity, infinity | sign, infinity + 1, infinity - 1};
    if (rng() % 16 == 0) bits = special[rng() % 8];
    std::memcpy(out.data() + i * size, &bits, size);
  }
  return out;
}

/// As the words of ulp_loop.h say it, element by element.
LoopSums Plain(const Type& unit, const std::vector<double>& a, const std::vector<double>& b) {
  LoopSums out;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!std::isfinite(a[i]) || !std::isfinite(b[i])) continue;
    const double most = std::max(std::fabs(a[i]), std::fabs(b[i])), apart = std::fabs(a[i] - b[i]);
    const int exponent = most == 0 ? unit.least : std::max(std::ilogb(most), unit.least);
    out.at[0] += a[i] * b[i];
    out.at[1] = std::max(out.at[1], std::ldexp(apart, unit.mantissa - exponent));
    out.at[2] = std::max(out.at[2], apart / (1 + std::fabs(b[i])));
    out.at[3] = std::max(out.at[3], most);
  }
  return out;
}

std::vector<double> Doubles(const Type& type, const std::vector<char>& bytes) {
  std::vector<double> out(bytes.size() / ElementSize(type.dtype));
  EXPECT_TRUE(metrics::ToDoubles(type.dtype, bytes.data(), out.size(), out.data()));
  return out;
}

class UlpLoopOf : public testing::TestWithParam<const char*> {
 protected:
  UlpLoopOf() : before_(MetricsIsa()) {}
  ~UlpLoopOf() override { (void)SetMetricsIsa(before_.c_str()); }

  static std::vector<LoopSums> SumsOf(const char* isa, const Type& a, const std::vector<char>& target, const Type& b,
                                      const std::vector<char>& golden) {
    EXPECT_TRUE(SetMetricsIsa(isa));
    const auto n = static_cast<int64_t>(target.size() / ElementSize(a.dtype));
    const PairLoop* const loops[] = {UlpLoop(a.dtype, b.dtype)};
    MetricsOptions options;
    options.loops = loops;
    return CompareTensors({target.data(), a.dtype, 1, &n, nullptr}, {golden.data(), b.dtype, 1, &n, nullptr}, options)
        .loops;
  }

 private:
  std::string before_;
};

TEST_P(UlpLoopOf, GivesTheBitsOfTheScalarKernel) {
  if (!SetMetricsIsa(GetParam())) GTEST_SKIP() << "this machine lacks it";
  for (const Type& a : kTypes) {
    for (const Type& b : kTypes) {
      const Type& unit = a.mantissa < b.mantissa ? a : b;
      for (const size_t n : {1, 7, 8, 9, 2048, 5000}) {
        const std::vector<char> target = Elements(a, n, static_cast<unsigned>(n), nullptr);
        const std::vector<char> golden = Elements(b, n, 3, a.dtype == b.dtype ? &target : nullptr);
        const LoopSums want = Plain(unit, Doubles(a, target), Doubles(b, golden));
        const std::vector<LoopSums> got = SumsOf(GetParam(), a, target, b, golden);
        const std::vector<LoopSums> scalar = SumsOf("scalar", a, target, b, golden);
        ASSERT_EQ(got.size(), 1u);
        for (size_t k = 0; k < 4; ++k) {
          const std::string what = std::string(DTypeName(a.dtype)) + " " + std::string(DTypeName(b.dtype)) + " " +
                                   std::to_string(n) + " sum " + std::to_string(k);
          EXPECT_EQ(std::bit_cast<uint64_t>(got[0].at[k]), std::bit_cast<uint64_t>(scalar[0].at[k])) << what;
          if (k > 0) EXPECT_EQ(got[0].at[k], want.at[k]) << what;  // of products, the order of additions differs
        }
      }
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Sets, UlpLoopOf, testing::Values("scalar", "avx2", "avx512", "neon"));

TEST(ExcessLoop, AllowsAUnitOfBothAndHalfOfOne) {
  const int64_t n = 3;
  const float whole[] = {1, 1 + 0x1p-8f, 0};
  const uint16_t one[] = {0x3F80, 0x3F80, 0}, next[] = {0x3F81, 0x3F82, 0x8000};  // bfloat16: 1 + 2^-7, 1 + 2^-6
  const auto excess = [&](const void* x, DType t, const void* y) {
    const PairLoop* const loops[] = {ExcessLoop(t, DType::kBFloat16)};
    MetricsOptions options;
    options.loops = loops;
    return CompareTensors({x, t, 1, &n, nullptr}, {y, DType::kBFloat16, 1, &n, nullptr}, options).loops[0].at[0];
  };
  EXPECT_EQ(excess(whole, DType::kFloat32, one), 0);        // half a unit
  EXPECT_EQ(excess(whole, DType::kFloat32, next), 0x1p-7);  // a unit and a half
  EXPECT_EQ(excess(one, DType::kBFloat16, one), 0);
  EXPECT_EQ(excess(one, DType::kBFloat16, next), 0x1p-7);  // two units
  EXPECT_EQ(ExcessLoop(DType::kFloat32, DType::kFloat32), nullptr);
}

TEST(UlpLoop, CountsInUnitsOfTheCoarserType) {
  const int64_t n = 2;
  const float a[] = {1, 4}, b[] = {1 + 0x1p-23f, 4 + 0x1p-8f};
  const uint16_t c[] = {0x3F80, 0x4081};  // bfloat16: 1, 4.03125
  const auto sums = [&](const void* y, DType t) {
    const PairLoop* const loops[] = {UlpLoop(DType::kFloat32, t)};
    MetricsOptions options;
    options.loops = loops;
    return CompareTensors({a, DType::kFloat32, 1, &n, nullptr}, {y, t, 1, &n, nullptr}, options).loops[0].at;
  };
  EXPECT_EQ(sums(b, DType::kFloat32)[1], 0x1p13);
  EXPECT_EQ(sums(c, DType::kBFloat16)[1], 1);
  EXPECT_EQ(sums(c, DType::kBFloat16)[2], 0.03125 / 5.03125);
  EXPECT_EQ(sums(c, DType::kBFloat16)[3], 4.03125);
}

}  // namespace
}  // namespace msprobe
