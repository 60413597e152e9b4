#include "tensor/kernels/stats.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "base/parallel.h"
#include "tensor/kernels/crc32.h"
#include "tensor/kernels/stats_kernels.h"

namespace msprobe {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<const char*> IsasHere() {
  std::vector<const char*> out;
  const std::string before = StatsIsa();
  for (const char* name : {"avx2", "avx512", "neon"}) {
    if (SetStatsIsa(name)) out.push_back(name);
  }
  EXPECT_TRUE(SetStatsIsa(before.c_str()));
  return out;
}

/// Sets an instruction set for a scope.
class WithIsa {
 public:
  explicit WithIsa(const char* name) : before_(StatsIsa()) { EXPECT_TRUE(SetStatsIsa(name)); }
  ~WithIsa() { EXPECT_TRUE(SetStatsIsa(before_.c_str())); }

 private:
  std::string before_;
};

template <typename T>
Stats Of(DType dtype, const std::vector<T>& v) {
  const int64_t n = static_cast<int64_t>(v.size() * sizeof(T) / ElementSize(dtype));
  Stats s;
  EXPECT_TRUE(ComputeStats({v.data(), dtype, 1, &n, nullptr}, &s));
  return s;
}

TEST(Stats, SmallFloats) {
  const Stats s = Of(DType::kFloat32, std::vector<float>{3, -4, 0});
  EXPECT_EQ(s.max, 3);
  EXPECT_EQ(s.min, -4);
  EXPECT_EQ(s.mean, -1.0 / 3);
  EXPECT_EQ(s.norm, 5);
  EXPECT_EQ(s.count, 3);
  const Stats empty = Of(DType::kFloat32, std::vector<float>{});
  EXPECT_EQ(empty.count, 0);
  EXPECT_EQ(empty.max, 0);
  EXPECT_EQ(empty.norm, 0);
}

TEST(Stats, NanAndInfinity) {
  for (const size_t n : {5u, 64u, 5000u, 300000u}) {
    std::vector<float> v(n, 1.0f);
    v[n / 2] = NAN;
    v[n / 3] = INFINITY;
    Stats s = Of(DType::kFloat32, v);
    EXPECT_TRUE(std::isnan(s.max) && std::isnan(s.min) && std::isnan(s.mean) && std::isnan(s.norm));
    EXPECT_EQ(s.nan_count, 1);
    EXPECT_EQ(s.inf_count, 1);
    v[n / 2] = 1.0f;
    s = Of(DType::kFloat32, v);
    EXPECT_EQ(s.max, kInfinity);
    EXPECT_EQ(s.min, 1);
    EXPECT_EQ(s.mean, kInfinity);
    EXPECT_EQ(s.norm, kInfinity);
    v[0] = -INFINITY;
    s = Of(DType::kFloat32, v);
    EXPECT_EQ(s.min, -kInfinity);
    EXPECT_TRUE(std::isnan(s.mean));
    EXPECT_EQ(s.norm, kInfinity);
    EXPECT_EQ(s.nan_count, 0);
    EXPECT_EQ(s.inf_count, 2);
  }
}

// Squares of 1e30 and of 1e-30 are beyond float, those of 1e200 and 1e-200 beyond double; the norms are not.
TEST(Stats, NormsOfHugeAndTinyValues) {
  const size_t n = 10000;
  for (const float x : {1e30f, 1e-30f, 3e38f, 1e-44f, 1e19f, 1e-19f}) {
    const Stats s = Of(DType::kFloat32, std::vector<float>(n, x));
    EXPECT_NEAR(s.norm / (100.0 * x), 1, 1e-6) << x;
    EXPECT_NEAR(s.mean / x, 1, 1e-6) << x;
    EXPECT_EQ(s.nan_count + s.inf_count, 0);
  }
  for (const double x : {1e200, 1e-200, 5e-324, 1e306}) {
    const Stats s = Of(DType::kFloat64, std::vector<double>(n, x));
    EXPECT_NEAR(s.norm / (100.0 * x), 1, x < 1e-300 ? 0.01 : 1e-12) << x;
  }
}

// Equal elements round the same way at every addition, which is the worst that sums of floats meet.
TEST(Stats, SumsStayWithinTheirBounds) {
  std::mt19937_64 rng(5);
  for (const char* isa : IsasHere()) {
    const WithIsa with(isa);
    for (int round = 0; round < 300; ++round) {
      const size_t n = 1 + rng() % 80000;
      std::vector<float> v(n, 1 + static_cast<float>(rng() % 1000003) / 1000003);
      // Every second round: signs that cancel.
      for (size_t i = 0; round % 2 == 1 && i < n; ++i) v[i] *= rng() % 2 == 0 ? 1.0f : -1.0f;
      double sum = 0, absolute = 0, squares = 0;
      for (const double x : v) sum += x, absolute += std::fabs(x), squares += x * x;
      const Stats s = Of(DType::kFloat32, v);
      EXPECT_LE(std::fabs(s.mean * static_cast<double>(n) - sum), 2e-6 * absolute) << isa << n << v[0];
      EXPECT_NEAR(s.norm / std::sqrt(squares), 1, 1e-6) << isa << n << v[0];
    }
  }
}

TEST(Stats, Integers) {
  const Stats s = Of(DType::kInt64, std::vector<int64_t>{INT64_MIN, INT64_MAX, 0, 9007199254740993});
  EXPECT_EQ(s.int_max, INT64_MAX);
  EXPECT_EQ(s.int_min, INT64_MIN);
  EXPECT_EQ(s.mean, 9007199254740992.0 / 4);
  EXPECT_NEAR(s.norm / (std::sqrt(2.0) * 9223372036854775808.0), 1, 1e-6);
  const Stats u = Of(DType::kUInt64, std::vector<uint64_t>{UINT64_MAX, 1});
  EXPECT_EQ(u.uint_max, UINT64_MAX);
  EXPECT_EQ(u.uint_min, 1u);
  const Stats b = Of(DType::kInt8, std::vector<int8_t>(100000, -128));
  EXPECT_EQ(b.int_max, -128);
  EXPECT_EQ(b.mean, -128);
  EXPECT_EQ(b.norm, 128 * std::sqrt(100000.0));
}

TEST(Stats, BoolComplexFloat8) {
  const Stats b = Of(DType::kBool, std::vector<uint8_t>{1, 0, 1, 1});
  EXPECT_EQ(b.max, 1);
  EXPECT_EQ(b.min, 0);
  EXPECT_EQ(b.mean, 0.75);
  EXPECT_EQ(b.norm, std::sqrt(3.0));
  EXPECT_EQ(Of(DType::kBool, std::vector<uint8_t>(3, 1)).min, 1);
  EXPECT_EQ(Of(DType::kBool, std::vector<uint8_t>(3, 0)).max, 0);
  const Stats c = Of(DType::kComplex64, std::vector<float>{3, 4, 0, -1});
  EXPECT_EQ(c.max, 5);
  EXPECT_EQ(c.min, 1);
  EXPECT_EQ(c.mean, 3);
  EXPECT_EQ(c.norm, std::sqrt(26.0));
  EXPECT_EQ(Of(DType::kComplex64, std::vector<float>{1, 1}).max, static_cast<double>(std::sqrt(2.0f)));
  // 1.0, -448 (the largest of e4m3fn), the smallest denormal 2^-9, NaN.
  const Stats f = Of(DType::kFloat8E4M3FN, std::vector<uint8_t>{0x38, 0xFE, 0x01});
  EXPECT_EQ(f.max, 1);
  EXPECT_EQ(f.min, -448);
  EXPECT_EQ(f.mean, (1 - 448 + 0x1p-9) / 3);
  EXPECT_EQ(Of(DType::kFloat8E4M3FN, std::vector<uint8_t>{0x7F, 0xFF}).nan_count, 2);
  EXPECT_EQ(Of(DType::kFloat8E5M2, std::vector<uint8_t>{0x7C, 0x3C}).max, kInfinity);
  EXPECT_EQ(Of(DType::kFloat8E5M2, std::vector<uint8_t>{0x7B}).max, 57344);
  EXPECT_EQ(Of(DType::kFloat8E4M3FNUZ, std::vector<uint8_t>{0x7F}).max, 240);
  EXPECT_EQ(Of(DType::kFloat8E5M2FNUZ, std::vector<uint8_t>{0x80}).nan_count, 1);
  EXPECT_EQ(Of(DType::kFloat8E8M0FNU, std::vector<uint8_t>{0x80}).max, 2);
}

TEST(Stats, HalfConversionKnowsEveryBitPattern) {
  EXPECT_EQ(stats::HalfToFloat(0x3C00), 1.0f);
  EXPECT_EQ(stats::HalfToFloat(0xC000), -2.0f);
  EXPECT_EQ(stats::HalfToFloat(0x7BFF), 65504.0f);
  EXPECT_EQ(stats::HalfToFloat(0x0001), 0x1p-24f);
  EXPECT_EQ(stats::HalfToFloat(0xFC00), -INFINITY);
  EXPECT_TRUE(std::isnan(stats::HalfToFloat(0x7E00)));
  // The vector units convert in hardware: the same sums over all 65536 patterns of a sign, NaN left out.
  for (const char* isa : IsasHere()) {
    const WithIsa with(isa);
    for (uint32_t base : {0u, 0x8000u}) {
      std::vector<uint16_t> all;
      for (uint32_t i = 0; i < 0x7C00; ++i) all.push_back(static_cast<uint16_t>(base + i));
      const int64_t n = static_cast<int64_t>(all.size());
      const TensorView view{all.data(), DType::kFloat16, 1, &n, nullptr};
      Stats fast, plain;
      ASSERT_TRUE(ComputeStats(view, &fast));
      ASSERT_TRUE(ComputeStatsScalar(view, &plain));
      EXPECT_EQ(fast.max, plain.max);
      EXPECT_EQ(fast.min, plain.min);
      EXPECT_NEAR(fast.mean / plain.mean, 1, 1e-6);
    }
  }
}

TEST(Stats, UnknownTypesAndShapesAreRefused) {
  const int64_t shape[2] = {-1, 2}, huge[3] = {INT64_MAX, INT64_MAX, 4}, none[3] = {INT64_MAX, INT64_MAX, 0};
  Stats s;
  float x = 0;
  EXPECT_FALSE(ComputeStats({&x, DType::kUnknown, 0, nullptr, nullptr}, &s));
  EXPECT_FALSE(ComputeStats({&x, DType::kFloat32, 2, shape, nullptr}, &s));
  EXPECT_FALSE(ComputeStats({&x, DType::kFloat32, 3, huge, nullptr}, &s));
  EXPECT_FALSE(ComputeStats({&x, DType::kFloat32, kMaxDims + 1, nullptr, nullptr}, &s));
  EXPECT_TRUE(ComputeStats({nullptr, DType::kFloat32, 3, none, nullptr}, &s));
  EXPECT_EQ(s.count, 0);
  EXPECT_TRUE(ComputeStats({&x, DType::kFloat32, 0, nullptr, nullptr}, &s));
  EXPECT_EQ(s.count, 1);
}

// ---- Each instruction set against the plain loop, over random views.

/// Memory full of random elements of a type, some of them NaN, infinite, denormal or huge as `kind` says.
std::vector<char> RandomMemory(std::mt19937_64& rng, DType t, size_t bytes, int kind) {
  std::vector<char> memory(bytes);
  const bool floats = t == DType::kFloat32 || t == DType::kComplex64;
  const bool doubles = t == DType::kFloat64 || t == DType::kComplex128;
  for (size_t i = 0; i + 8 <= bytes; i += 8) {
    const uint64_t r = rng();
    const double u = static_cast<double>(static_cast<int64_t>(r)) / 9.3e18;
    // Kind 0: moderate values; 1: any magnitude; 2: any bits (NaN, infinities, denormals).
    const double v = kind == 1 ? std::ldexp(u, static_cast<int>(rng() % 250) - 125) : u * 4 + 1;
    if (kind == 2 || (!floats && !doubles && t != DType::kFloat16 && t != DType::kBFloat16)) {
      std::memcpy(&memory[i], &r, 8);
    } else if (doubles) {
      std::memcpy(&memory[i], &v, 8);
    } else if (floats) {
      const float f[2] = {static_cast<float>(v), static_cast<float>(-v / 3)};
      std::memcpy(&memory[i], f, 8);
    } else {
      for (int k = 0; k < 4; ++k) {
        const float f = static_cast<float>(v / (k + 1));
        // bfloat16 cut from float; for half any finite pattern of that exponent range will do.
        uint16_t bits = static_cast<uint16_t>(__builtin_bit_cast(uint32_t, f) >> 16);
        if (t == DType::kFloat16) bits = static_cast<uint16_t>((r >> (16 * k)) & 0xBBFF);
        std::memcpy(&memory[i + 2 * static_cast<size_t>(k)], &bits, 2);
      }
    }
  }
  if (t == DType::kBool) {
    for (char& c : memory) c &= 1;
  }
  return memory;
}

void ExpectClose(double fast, double plain, double scale, const std::string& what) {
  if (std::isnan(plain) || std::isinf(plain)) {
    EXPECT_EQ(std::isnan(fast), std::isnan(plain)) << what;
    if (std::isinf(plain)) {
      EXPECT_EQ(fast, plain) << what;
    }
    return;
  }
  EXPECT_LE(std::fabs(fast - plain), 1e-6 * scale) << what << " fast " << fast << " plain " << plain;
}

void ExpectSameStats(const TensorView& view, const std::string& what) {
  Stats fast, plain;
  ASSERT_TRUE(ComputeStats(view, &fast)) << what;
  ASSERT_TRUE(ComputeStatsScalar(view, &plain)) << what;
  EXPECT_EQ(fast.count, plain.count) << what;
  EXPECT_EQ(fast.nan_count, plain.nan_count) << what;
  EXPECT_EQ(fast.inf_count, plain.inf_count) << what;
  EXPECT_EQ(fast.int_max, plain.int_max) << what;
  EXPECT_EQ(fast.int_min, plain.int_min) << what;
  EXPECT_EQ(fast.uint_max, plain.uint_max) << what;
  EXPECT_EQ(fast.uint_min, plain.uint_min) << what;
  EXPECT_EQ(std::isnan(fast.max), std::isnan(plain.max)) << what;
  if (!std::isnan(plain.max)) {
    EXPECT_EQ(fast.max, plain.max) << what;
    EXPECT_EQ(fast.min, plain.min) << what;
  }
  Stats fused;
  uint32_t crc = 0;
  ASSERT_TRUE(ComputeStatsAndCrc32(view, &fused, &crc)) << what;
  EXPECT_EQ(crc, ComputeCrc32(view)) << what;
  EXPECT_EQ(std::memcmp(&fused, &fast, sizeof fast), 0) << what << ": the checksum changes the statistics";
  // The mean is held to the norm: |mean| <= norm / sqrt(n).
  const double root = std::sqrt(static_cast<double>(std::max<int64_t>(1, plain.count)));
  ExpectClose(fast.norm, plain.norm, plain.norm, what + " norm");
  ExpectClose(fast.mean, plain.mean, std::isfinite(plain.norm) ? plain.norm / root : 0, what + " mean");
}

struct RandomView {
  std::vector<int64_t> shape, strides;
  size_t begin = 0;  // elements
};

/// A view into `elements` elements: permuted, stepped, flipped, broadcast.
RandomView MakeRandomView(std::mt19937_64& rng, size_t elements) {
  RandomView v;
  const int ndim = static_cast<int>(rng() % 5);
  int64_t reach = 1;
  for (int d = 0; d < ndim; ++d) {
    const int64_t length = 1 + static_cast<int64_t>(rng() % (d == 0 ? 200 : 9));
    const int64_t step = rng() % 3 == 0 ? 1 + static_cast<int64_t>(rng() % 3) : 1;
    if (reach * length * step > static_cast<int64_t>(elements) - 8) break;
    v.shape.push_back(length);
    v.strides.push_back(rng() % 7 == 0 ? 0 : reach * step);
    reach *= length * step;
  }
  for (size_t d = v.shape.size(); d > 1; --d) {
    const size_t other = rng() % d;
    std::swap(v.shape[d - 1], v.shape[other]);
    std::swap(v.strides[d - 1], v.strides[other]);
  }
  v.begin = rng() % 8;
  for (size_t d = 0; d < v.shape.size(); ++d) {
    if (rng() % 5) continue;
    v.begin += static_cast<size_t>((v.shape[d] - 1) * v.strides[d]);
    v.strides[d] = -v.strides[d];
  }
  return v;
}

class Differential : public testing::TestWithParam<int> {};

TEST_P(Differential, VectorsAgreeWithThePlainLoop) {
  const auto t = static_cast<DType>(GetParam());
  const size_t element = ElementSize(t);
  for (const char* isa : IsasHere()) {
    const WithIsa with(isa);
    std::mt19937_64 rng(7 + static_cast<uint64_t>(GetParam()));
    for (int round = 0; round < 120; ++round) {
      const size_t elements = round < 60 ? 20000 : 1 + rng() % 9000;
      const std::vector<char> memory = RandomMemory(rng, t, (elements + 1) * element + 8, round % 3);
      const std::string what = std::string(isa) + " " + std::string(DTypeName(t)) + " round " + std::to_string(round);
      if (round >= 60) {
        // Contiguous, of odd sizes, at odd addresses.
        const int64_t n = static_cast<int64_t>(elements);
        ExpectSameStats({memory.data() + rng() % 8, t, 1, &n, nullptr}, what);
        continue;
      }
      const RandomView v = MakeRandomView(rng, elements);
      ExpectSameStats(
          {memory.data() + v.begin * element, t, static_cast<int>(v.shape.size()), v.shape.data(), v.strides.data()},
          what);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, Differential, testing::Range(0, static_cast<int>(DType::kUnknown)),
                         [](const auto& param) { return std::string(DTypeName(static_cast<DType>(param.param))); });

// The virtual lanes are the same for every instruction set and the parts for every thread count: equal to the last bit.
TEST(Stats, SameBitsForEveryInstructionSetAndThreadCount) {
  std::mt19937_64 rng(3);
  for (const DType t :
       {DType::kFloat32, DType::kBFloat16, DType::kFloat16, DType::kFloat64, DType::kInt64, DType::kInt32}) {
    const int64_t n = t == DType::kFloat32 ? 4456455 : 1500007;  // of the one type enough for a second thread
    const std::vector<char> memory = RandomMemory(rng, t, static_cast<size_t>(n + 1) * ElementSize(t) + 8, 0);
    Stats first;
    bool have = false;
    for (const char* isa : IsasHere()) {
      const WithIsa with(isa);
      for (const int threads : {1, 2, 5}) {
        SetThreadCount(threads);
        Stats s;
        uint32_t crc = 0;
        ASSERT_TRUE(ComputeStatsAndCrc32({memory.data(), t, 1, &n, nullptr}, &s, &crc));
        EXPECT_EQ(crc, Crc32(memory.data(), static_cast<size_t>(n) * ElementSize(t))) << isa << threads;
        if (have) {
          EXPECT_EQ(s.mean, first.mean) << isa << threads;
          EXPECT_EQ(s.norm, first.norm) << isa << threads;
        }
        first = s;
        have = true;
      }
    }
    SetThreadCount(0);
  }
}

// Read for a checksum as well, or for statistics alone: equal to the last bit, and the checksum that of a plain loop.
TEST(Stats, SameBitsWithAndWithoutAChecksum) {
  std::mt19937_64 rng(5);
  const auto bits = [](double v) { return std::isnan(v) ? ~uint64_t{0} : __builtin_bit_cast(uint64_t, v); };
  for (const DType t : {DType::kFloat32, DType::kBFloat16, DType::kFloat16}) {
    for (const int64_t n : {32767, 32768, 36863, 36864, 40959, 40960, 40961, 262144, 300001}) {
      for (const int kind : {0, 1, 2}) {
        const std::vector<char> memory = RandomMemory(rng, t, static_cast<size_t>(n) * ElementSize(t) + 8, kind);
        for (const char* isa : IsasHere()) {
          const WithIsa with(isa);
          Stats with_crc, alone;
          uint32_t crc = 0;
          const TensorView view{memory.data(), t, 1, &n, nullptr};
          ASSERT_TRUE(ComputeStatsAndCrc32(view, &with_crc, &crc) && ComputeStats(view, &alone));
          const std::string what = std::string(isa) + " " + std::to_string(n) + " " + std::to_string(kind);
          for (const auto member : {&Stats::min, &Stats::max, &Stats::mean, &Stats::norm}) {
            EXPECT_EQ(bits(alone.*member), bits(with_crc.*member)) << what;
          }
          EXPECT_EQ(alone.nan_count, with_crc.nan_count) << what;
          EXPECT_EQ(alone.inf_count, with_crc.inf_count) << what;
          EXPECT_EQ(crc, crc32::Plain(memory.data(), static_cast<size_t>(n) * ElementSize(t), 0)) << what;
        }
      }
    }
  }
  std::vector<float> zeros(32768, 0.0f);
  for (size_t i = zeros.size() / 2; i < zeros.size(); ++i) zeros[i] = -0.0f;
  const int64_t n = 32768;
  for (const char* isa : IsasHere()) {
    const WithIsa with(isa);
    Stats with_crc, alone;
    uint32_t crc = 0;
    const TensorView view{zeros.data(), DType::kFloat32, 1, &n, nullptr};
    ASSERT_TRUE(ComputeStatsAndCrc32(view, &with_crc, &crc) && ComputeStats(view, &alone));
    EXPECT_EQ(bits(alone.max), bits(with_crc.max)) << isa;
    EXPECT_EQ(bits(alone.min), bits(with_crc.min)) << isa;
  }
}

TEST(Crc32, VectorsAgreeWithThePlainLoop) {
  std::mt19937_64 rng(11);
  const std::vector<char> memory = RandomMemory(rng, DType::kUInt8, 5000, 2);
  for (size_t bytes = 0; bytes < 4000; bytes += bytes < 1100 ? 1 : 37) {
    const size_t begin = rng() % 64;
    const auto seed = static_cast<uint32_t>(rng());
    EXPECT_EQ(Crc32(memory.data() + begin, bytes, seed), crc32::Plain(memory.data() + begin, bytes, seed)) << bytes;
  }
}

TEST(Crc32, OfTwoPieces) {
  const std::string text = "Statistics and checksums of tensors";
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    const uint32_t a = Crc32(text.data(), cut), b = Crc32(text.data() + cut, text.size() - cut);
    EXPECT_EQ(CombineCrc32(a, b, text.size() - cut), Crc32(text.data(), text.size())) << cut;
  }
  const std::string zeros((1 << 20) + 3, '\0');
  EXPECT_EQ(CombineCrc32(Crc32("x", 1), Crc32(zeros.data(), zeros.size()), zeros.size()),
            Crc32(("x" + zeros).data(), zeros.size() + 1));
}

TEST(Crc32, KnownValuesAndStrides) {
  EXPECT_EQ(Crc32("123456789", 9), 0xCBF43926u);
  EXPECT_EQ(Crc32("", 0), 0u);
  EXPECT_EQ(Crc32("56789", 5, Crc32("1234", 4)), 0xCBF43926u);
  std::mt19937_64 rng(5);
  for (const size_t element : {1u, 2u, 4u, 8u, 16u}) {
    const DType t = element == 1   ? DType::kUInt8
                    : element == 2 ? DType::kFloat16
                    : element == 4 ? DType::kFloat32
                    : element == 8 ? DType::kFloat64
                                   : DType::kComplex128;
    for (int round = 0; round < 50; ++round) {
      const std::vector<char> memory = RandomMemory(rng, t, 20001 * element + 8, 2);
      const RandomView v = MakeRandomView(rng, 20000);
      const char* data = memory.data() + v.begin * element;
      // The contiguous copy, made the plain way.
      std::string copy;
      std::vector<int64_t> at(v.shape.size(), 0);
      for (bool more = true; more;) {
        int64_t offset = 0;
        for (size_t d = 0; d < at.size(); ++d) offset += at[d] * v.strides[d];
        copy.append(data + offset * static_cast<int64_t>(element), element);
        more = false;
        for (size_t d = at.size(); d-- > 0 && !more;) {
          if (++at[d] < v.shape[d]) {
            more = true;
          } else {
            at[d] = 0;
          }
        }
      }
      const TensorView view{data, t, static_cast<int>(v.shape.size()), v.shape.data(), v.strides.data()};
      EXPECT_EQ(ComputeCrc32(view), Crc32(copy.data(), copy.size()));
    }
  }
}

}  // namespace
}  // namespace msprobe
