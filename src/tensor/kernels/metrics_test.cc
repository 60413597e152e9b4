#include "tensor/kernels/metrics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <random>
#include <string>

#include "base/interrupt.h"
#include "base/parallel.h"
#include "tensor/kernels/metrics_plain.h"

namespace msprobe {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

template <typename T>
struct Vector {
  std::vector<T> values;
  DType dtype;
  std::vector<int64_t> shape{static_cast<int64_t>(values.size())};
  TensorView view() const { return {values.data(), dtype, static_cast<int>(shape.size()), shape.data(), nullptr}; }
};
Vector<float> Floats(std::vector<float> v) { return {std::move(v), DType::kFloat32}; }
Vector<uint16_t> Halves(std::vector<uint16_t> v) { return {std::move(v), DType::kFloat16}; }
Vector<uint16_t> BFloats(std::vector<uint16_t> v) { return {std::move(v), DType::kBFloat16}; }
Vector<int64_t> Ints(std::vector<int64_t> v) { return {std::move(v), DType::kInt64}; }
Vector<uint8_t> Bools(std::vector<uint8_t> v) { return {std::move(v), DType::kBool}; }

template <typename A, typename B>
TensorMetrics Compare(const A& a, const B& b, int worst = 0) {
  MetricsOptions options;
  options.worst = worst;
  return CompareTensors(a.view(), b.view(), options);
}

void ExpectNear(double got, double want) { EXPECT_NEAR(got, want, std::fabs(want) * 1e-9 + 5e-13); }

void ExpectErrors(const TensorMetrics& m, double cosine, double max_abs, double max_relative) {
  EXPECT_EQ(m.cosine_state, CosineState::kNumber);
  ExpectNear(m.cosine, cosine);
  ExpectNear(m.max_abs_err, max_abs);
  ExpectNear(m.max_relative_err, max_relative);
}

// The vectors of the reference: what the columns say of pairs of small tensors.
TEST(MetricsVectors, Floats) {
  ExpectErrors(Compare(Floats({1, 2, 3}), Floats({1, 2, 3})), 1, 0, 0);
  ExpectErrors(Compare(Floats({1, 2, 3}), Floats({0, 2, 3})), 0.963624111659, 1, 8388608);
  ExpectErrors(Compare(Floats({1e30f, 1e30f, 3}), Floats({1e30f, -1e30f, 3})), 0, 2.0000000300949324e+30, 2);
}

TEST(MetricsVectors, Zeros) {
  const TensorMetrics target = Compare(Floats({0, 0, 0}), Floats({1, 2, 3}));
  EXPECT_EQ(target.cosine_state, CosineState::kTargetZero);
  EXPECT_EQ(target.max_abs_err, 3);
  EXPECT_EQ(target.max_relative_err, 1);
  EXPECT_EQ(target.below_five_thousandths, 0);
  EXPECT_EQ(Compare(Floats({1, 2, 3}), Floats({0, 0, 0})).cosine_state, CosineState::kGoldenZero);
  const TensorMetrics both = Compare(Floats({0, 0, 0}), Floats({0, 0, 0}));
  EXPECT_EQ(both.cosine_state, CosineState::kBothZero);
  EXPECT_EQ(both.cosine, 1);
  EXPECT_TRUE(both.identical);
  EXPECT_EQ(both.below_thousandth, 3);
}

TEST(MetricsVectors, NonFinite) {
  const TensorMetrics differ = Compare(Floats({kNaN, 2, 3}), Floats({1, 2, 3}));
  EXPECT_EQ(differ.differ, 1);
  EXPECT_EQ(differ.target.nan, 1);
  const TensorMetrics same = Compare(Floats({kNaN, 2, kInf}), Floats({kNaN, 2.5f, kInf}));
  EXPECT_EQ(same.differ, 0);
  ExpectErrors(same, 1, 0.5, 0.20000000298);
  EXPECT_EQ(same.below_thousandth, 2);
  // The older tool takes +Inf for -Inf.
  const TensorMetrics sign = Compare(Floats({kInf, 2, 1}), Floats({-kInf, 2, 1}));
  EXPECT_EQ(sign.differ, 1);
  EXPECT_EQ(sign.target.plus_inf, 1);
  EXPECT_EQ(sign.golden.minus_inf, 1);
}

TEST(MetricsVectors, Shapes) {
  EXPECT_EQ(Compare(Floats({1, 1, 1}), Floats({1, 1})).state, PairState::kOtherShape);
  auto row = Floats({1, 2, 3});
  row.shape = {1, 3, 1};
  ExpectErrors(Compare(row, Floats({1, 2, 3})), 1, 0, 0);
  EXPECT_EQ(Compare(Floats({}), Floats({})).state, PairState::kEmpty);
  for (const auto& shape : {std::vector<int64_t>{}, std::vector<int64_t>{1}}) {
    auto two = Floats({2}), three = Floats({3});
    two.shape = three.shape = shape;
    const TensorMetrics m = Compare(two, three);
    EXPECT_EQ(m.cosine_state, CosineState::kLengthOne);
    EXPECT_EQ(m.max_abs_err, 1);
    ExpectNear(m.max_relative_err, 0.333333343267);
  }
}

TEST(MetricsVectors, Types) {
  // 0x3C00 is 1 in float16.
  ExpectErrors(Compare(Halves({0x3C00, 0x3C00}), Floats({1.001f, 1.001f})), 1, 0.00100004673, 0.000999047654);
  ExpectErrors(Compare(BFloats({0x3F80, 0x4000}), BFloats({0x3F80, 0x4000})), 1, 0, 0);
  ExpectErrors(Compare(Bools({1, 0, 1}), Bools({1, 1, 1})), 0.816496580928, 1, 1);
  const TensorMetrics ints = Compare(Ints({1, 2, 3}), Ints({1, 2, 4}));
  ExpectErrors(ints, 0.991460133984, 1, 0.25);
  EXPECT_EQ(ints.euc_dist, 1);
  ExpectNear(ints.share(ints.below_thousandth), 0.666666666667);
}

/// Bits that make all kinds of numbers likely: zeros, ones, denormals, large ones, NaN and infinities of each type.
std::vector<char> SpecialBytes(DType dtype, size_t bytes, unsigned seed) {
  std::mt19937 rng(seed);
  std::vector<char> out(bytes);
  for (char& c : out) c = static_cast<char>(rng());
  const size_t element = std::max<size_t>(1, IsComplex(dtype) ? ElementSize(dtype) / 2 : ElementSize(dtype));
  const auto put = [&](size_t at, uint64_t bits) { std::memcpy(out.data() + at, &bits, element); };
  const uint64_t sign = uint64_t{1} << (8 * element - 1);
  const uint64_t infinity = element == 2   ? (dtype == DType::kBFloat16 ? 0x7F80 : 0x7C00)
                            : element == 4 ? 0x7F800000
                            : element == 8 ? 0x7FF0000000000000
                                           : 0x7C;
  for (size_t at = 0; at + element <= bytes; at += element) {
    switch (rng() % 24) {
      case 0: put(at, 0); break;
      case 1: put(at, sign); break;
      case 2: put(at, infinity); break;
      case 3: put(at, infinity | sign); break;
      case 4: put(at, infinity + 1); break;  // NaN
      case 5: put(at, 1); break;             // the smallest number
      case 6: put(at, infinity - 1); break;  // the largest
      default: break;
    }
  }
  return out;
}

void ExpectSame(const TensorMetrics& got, const TensorMetrics& want, const std::string& what) {
  EXPECT_EQ(got.state, want.state) << what;
  EXPECT_EQ(got.cosine_state, want.cosine_state) << what;
  EXPECT_EQ(got.identical, want.identical) << what;
  EXPECT_EQ(got.count, want.count) << what;
  EXPECT_EQ(got.below_thousandth, want.below_thousandth) << what;
  EXPECT_EQ(got.below_five_thousandths, want.below_five_thousandths) << what;
  EXPECT_EQ(got.equal, want.equal) << what;
  EXPECT_EQ(got.differ, want.differ) << what;
  for (const auto& [a, b] : {std::pair(&got.target, &want.target), std::pair(&got.golden, &want.golden)}) {
    EXPECT_EQ(a->nan, b->nan) << what;
    EXPECT_EQ(a->plus_inf, b->plus_inf) << what;
    EXPECT_EQ(a->minus_inf, b->minus_inf) << what;
  }
}

void ExpectSameBits(const TensorMetrics& got, const TensorMetrics& want, const std::string& what) {
  ExpectSame(got, want, what);
  for (const auto field :
       {&TensorMetrics::cosine, &TensorMetrics::euc_dist, &TensorMetrics::max_abs_err, &TensorMetrics::max_relative_err,
        &TensorMetrics::rms_diff, &TensorMetrics::rms_target, &TensorMetrics::rms_golden}) {
    EXPECT_EQ(std::bit_cast<uint64_t>(got.*field), std::bit_cast<uint64_t>(want.*field)) << what;
  }
  ASSERT_EQ(got.worst.size(), want.worst.size()) << what;
  for (size_t i = 0; i < got.worst.size(); ++i) EXPECT_EQ(got.worst[i].index, want.worst[i].index) << what;
}

bool IsNear(double got, double want) {
  return got == want || std::fabs(got - want) <= 1e-11 * std::max(std::fabs(got), std::fabs(want)) ||
         (std::isnan(got) && std::isnan(want));
}

/// `want` names all elements that differ, of which `got` has the worst.
void ExpectPlain(const TensorMetrics& got, const TensorMetrics& want, size_t most, const std::string& what) {
  ExpectSame(got, want, what);
  EXPECT_NEAR(got.cosine, want.cosine_state == CosineState::kBothZero ? 1 : want.cosine, 1e-12) << what;
  EXPECT_TRUE(IsNear(got.euc_dist, want.euc_dist)) << what << got.euc_dist << " " << want.euc_dist;
  EXPECT_TRUE(IsNear(got.max_abs_err, want.max_abs_err)) << what;
  EXPECT_TRUE(IsNear(got.max_relative_err, want.max_relative_err)) << what;
  ASSERT_EQ(got.worst.size(), std::min(want.worst.size(), most)) << what;
  std::map<int64_t, double> errors;
  for (const WorstElement& e : want.worst) errors[e.index] = e.abs_err;
  for (size_t i = 0; i < got.worst.size(); ++i) {
    EXPECT_TRUE(IsNear(got.worst[i].abs_err, want.worst[i].abs_err)) << what;
    EXPECT_TRUE(IsNear(got.worst[i].abs_err, errors[got.worst[i].index])) << what;
    errors.erase(got.worst[i].index);
  }
}

std::vector<std::string> Isas() {
  std::vector<std::string> isas;
  const std::string before = MetricsIsa();
  for (const char* isa : {"scalar", "avx2", "avx512", "neon"}) {
    if (SetMetricsIsa(isa)) isas.emplace_back(isa);
  }
  (void)SetMetricsIsa(before.c_str());
  return isas;
}

/// Each instruction set gives the same bits, and what the plain loop says.
void CheckPair(const TensorView& target, const TensorView& golden, const std::string& what, int worst = 4) {
  MetricsOptions options;
  options.worst = worst;
  const std::string before = MetricsIsa();
  ASSERT_TRUE(SetMetricsIsa("scalar"));
  const TensorMetrics want = CompareTensors(target, golden, options);
  for (const std::string& isa : Isas()) {
    ASSERT_TRUE(SetMetricsIsa(isa.c_str()));
    ExpectSameBits(CompareTensors(target, golden, options), want, what + " " + isa);
  }
  ASSERT_TRUE(SetMetricsIsa(before.c_str()));
  ExpectPlain(want, plain::Compare(target, golden), static_cast<size_t>(worst), what);
}

TEST(MetricsKernels, EachPairOfTypes) {
  constexpr int kTypes = static_cast<int>(DType::kUnknown);
  const std::vector<int64_t> shape = {7, 5, 11};
  const int64_t n = 7 * 5 * 11;
  for (int a = 0; a < kTypes; ++a) {
    for (int b = 0; b < kTypes; ++b) {
      const DType t = static_cast<DType>(a), g = static_cast<DType>(b);
      const std::string what = std::string(DTypeName(t)) + " " + std::string(DTypeName(g));
      auto target = SpecialBytes(t, ElementSize(t) * n, 1), golden = SpecialBytes(g, ElementSize(g) * n, 2);
      if (a == b) std::memcpy(golden.data(), target.data(), ElementSize(t) * n / 2);
      CheckPair({target.data(), t, 3, shape.data(), nullptr}, {golden.data(), g, 3, shape.data(), nullptr}, what);
    }
  }
}

TEST(MetricsKernels, LengthsAndOffsets) {
  for (const DType t : {DType::kFloat32, DType::kBFloat16, DType::kFloat16, DType::kFloat64, DType::kInt64}) {
    auto target = SpecialBytes(t, 8 * 5000, 3), golden = SpecialBytes(t, 8 * 5000, 4);
    for (const int64_t n : {1, 2, 7, 8, 9, 15, 16, 17, 31, 2047, 2048, 2049, 4096, 4999}) {
      // Members of files lie at any address.
      const size_t odd = n % 2 == 0 ? 1 : 0;
      const TensorView a{target.data() + odd, t, 1, &n, nullptr}, b{golden.data(), t, 1, &n, nullptr};
      if (n > 1) CheckPair(a, b, std::string(DTypeName(t)) + " " + std::to_string(n));
      EXPECT_TRUE(CompareTensors(a, a).identical);
    }
  }
}

TEST(MetricsKernels, Strides) {
  struct Case {
    std::vector<int64_t> shape, target, golden;
    int64_t target_begin, golden_begin;
    int worst = 4;
  };
  const Case cases[] = {
      {{40, 50}, {50, 1}, {1, 40}, 0, 0},                  // one of them transposed
      {{40, 50}, {1, 40}, {1, 40}, 0, 0},                  // both: runs go through memory
      {{40, 50}, {-50, 1}, {-50, 1}, 39 * 50, 39 * 50},    // both flipped
      {{3, 1, 4, 5}, {1, 9, 15, 3}, {1, 7, 15, 3}, 0, 0},  // permuted, a stride that says nothing
      {{40, 50}, {0, 1}, {0, 1}, 0, 0, 0},                 // broadcast
      {{40, 50}, {100, 2}, {50, 1}, 0, 0},                 // every other element
      {{6, 7}, {7, -1}, {7, 1}, 6, 0},
  };
  for (const DType t : {DType::kFloat32, DType::kBFloat16, DType::kComplex128, DType::kInt8, DType::kInt64}) {
    for (const Case& c : cases) {
      const auto size = static_cast<int64_t>(ElementSize(t));
      auto target = SpecialBytes(t, static_cast<size_t>(5000 * size), 5);
      auto golden = SpecialBytes(t, static_cast<size_t>(5000 * size), 6);
      const int ndim = static_cast<int>(c.shape.size());
      CheckPair({target.data() + c.target_begin * size, t, ndim, c.shape.data(), c.target.data()},
                {golden.data() + c.golden_begin * size, t, ndim, c.shape.data(), c.golden.data()},
                std::string(DTypeName(t)) + " case " + std::to_string(&c - cases), c.worst);
    }
  }
}

TEST(MetricsKernels, SameForAnyNumberOfThreads) {
  const int64_t n = (int64_t{1} << 20) + 777;
  std::mt19937 rng(1);
  std::normal_distribution<float> normal;
  std::vector<float> target(n), golden(n);
  for (int64_t i = 0; i < n; ++i) {
    golden[i] = normal(rng);
    target[i] = i % 3 == 0 ? golden[i] : golden[i] + 1e-3f * normal(rng);
  }
  const TensorView a{target.data(), DType::kFloat32, 1, &n, nullptr}, b{golden.data(), DType::kFloat32, 1, &n, nullptr};
  MetricsOptions options;
  options.worst = 10;
  options.threads = false;
  const TensorMetrics alone = CompareTensors(a, b, options);
  options.threads = true;
  for (const int threads : {1, 2, 7}) {
    SetThreadCount(threads);
    ExpectSameBits(CompareTensors(a, b, options), alone, std::to_string(threads));
  }
  SetThreadCount(0);
  ExpectPlain(alone, plain::Compare(a, b), 10, "plain");
}

TEST(MetricsValues, LargeIntegersAreExact) {
  constexpr int64_t kLarge = int64_t{1} << 62;
  const TensorMetrics m = Compare(Ints({kLarge, 5, -kLarge}), Ints({kLarge + 1, 5, -kLarge}));
  EXPECT_EQ(m.max_abs_err, 1);
  EXPECT_EQ(m.equal, 2);
  EXPECT_FALSE(m.identical);
  EXPECT_EQ(m.euc_dist, 1);
  const TensorMetrics far = Compare(Ints({INT64_MAX, 0}), Ints({INT64_MIN, 0}));
  EXPECT_EQ(far.max_abs_err, 0x1p64);
  const Vector<uint64_t> top{{UINT64_MAX, 1}, DType::kUInt64};
  EXPECT_EQ(Compare(top, Ints({-1, 1})).max_abs_err, 0x1p64);
  EXPECT_EQ(Compare(top, Ints({-1, 1})).equal, 1);
}

TEST(MetricsValues, ComplexNumbersHaveTwoParts) {
  const Vector<float> a{{1, 2, 3, 4}, DType::kComplex64, {2}}, b{{1, 2, 3, -4}, DType::kComplex64, {2}};
  const TensorMetrics m = Compare(a, b);
  EXPECT_EQ(m.max_abs_err, 8);
  ExpectNear(m.max_relative_err, 1.6);
  ExpectNear(m.cosine, (1 + 4 + 9 - 16) / 30.0);
  const Vector<float> c{{1, kNaN, 3, 4}, DType::kComplex64, {2}};
  EXPECT_EQ(Compare(a, c).differ, 1);
  EXPECT_EQ(Compare(a, c).golden.nan, 1);
  EXPECT_EQ(Compare(c, c).differ, 0);
  // A tensor of numbers that are not complex, by value.
  EXPECT_EQ(Compare(a, Floats({1, 3})).max_abs_err, 4);
}

TEST(MetricsValues, SumsBeyondTheRangeOfDouble) {
  const Vector<double> a{{1e200, 2e200, 0}, DType::kFloat64}, b{{1e200, -2e200, 0}, DType::kFloat64};
  const TensorMetrics m = Compare(a, b);
  EXPECT_EQ(m.cosine_state, CosineState::kNumber);
  ExpectNear(m.cosine, -0.6);
  ExpectNear(m.euc_dist / 1e200, 4);
  ExpectNear(m.rms_golden / 1e200, std::sqrt(5.0 / 3));
  const Vector<double> c{{3e-200, 1}, DType::kFloat64}, d{{0, 1}, DType::kFloat64};
  ExpectNear(Compare(c, d).euc_dist / 3e-200, 1);
}

TEST(MetricsValues, OneElementIsSubtractedInItsType) {
  // 2049 - 0.5 is not a float16; the frameworks round it.
  const TensorMetrics half = Compare(Halves({0x6801}), Halves({0x3800}));
  EXPECT_EQ(half.max_abs_err, 2050 - 0.5 + 0.5);
  EXPECT_TRUE(half.scalar);
  EXPECT_EQ(Compare(Floats({1.0f}), Floats({1e-10f})).max_abs_err, 1.0);
  const Vector<double> wide{{1e-10}, DType::kFloat64};
  EXPECT_EQ(Compare(Floats({1.0f}), wide).max_abs_err, 1.0 - 1e-10);
}

TEST(MetricsValues, WorstElements) {
  const TensorMetrics m = Compare(Floats({1, 5, 3, 4, kNaN, 9}), Floats({1, 2, 0, 5, 7, 9}), 10);
  ASSERT_EQ(m.worst.size(), 4u);
  EXPECT_EQ(m.worst[0].index, 4);
  EXPECT_TRUE(std::isinf(m.worst[0].abs_err));
  EXPECT_EQ(m.worst[1].index, 1);  // of two equal ones the first
  EXPECT_EQ(m.worst[2].index, 2);
  EXPECT_EQ(m.worst[2].target, 3);
  EXPECT_EQ(m.worst[2].golden, 0);
  EXPECT_EQ(m.worst[3].relative, 0.2f);
}

TEST(MetricsValues, PlacesOfElements) {
  const int64_t shape[3] = {2, 3, 4};
  const TensorView t{nullptr, DType::kFloat32, 3, shape, nullptr};
  EXPECT_EQ(MultiIndex(t, 0), (std::vector<int64_t>{0, 0, 0}));
  EXPECT_EQ(MultiIndex(t, 23), (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(MultiIndex(t, 6), (std::vector<int64_t>{0, 1, 2}));
  EXPECT_TRUE(MultiIndex({nullptr, DType::kFloat32, 0, nullptr, nullptr}, 0).empty());
}

TEST(MetricsValues, RootMeanSquares) {
  const TensorMetrics m = Compare(Floats({3, 4, 0, 0}), Floats({0, 0, 0, 0}));
  EXPECT_EQ(m.rms_diff, 2.5);
  EXPECT_EQ(m.rms_target, 2.5);
  EXPECT_EQ(m.rms_golden, 0);
}

TEST(MetricsValues, SignsOfZeroAndKindsOfNaN) {
  const TensorMetrics zero = Compare(Floats({0.0f, 1}), Floats({-0.0f, 1}));
  EXPECT_FALSE(zero.identical);
  EXPECT_EQ(zero.equal, 1);
  EXPECT_EQ(zero.max_abs_err, 0);
  const float other = std::bit_cast<float>(0x7FC00001u);
  const TensorMetrics nan = Compare(Floats({kNaN, 1}), Floats({other, 1}));
  EXPECT_FALSE(nan.identical);
  EXPECT_EQ(nan.equal, 2);
  EXPECT_EQ(nan.differ, 0);
}

TEST(MetricsValues, WhatIsDoneWithIsReleased) {
  const int64_t n = (int64_t{1} << 20) + 5;
  std::vector<float> target(n, 1), golden(n, 2);
  std::atomic<int64_t> bytes{0};
  MetricsOptions options;
  options.release = [&](const void*, size_t size) { bytes += static_cast<int64_t>(size); };
  (void)CompareTensors({target.data(), DType::kFloat32, 1, &n, nullptr},
                       {golden.data(), DType::kFloat32, 1, &n, nullptr}, options);
  EXPECT_EQ(bytes, 2 * 4 * n);
}

TEST(MetricsValues, LargeViewsOfFewBytes) {
  const float v[4] = {1, 2, 3, 4}, w[4] = {1, 2, 3, 5};
  const int64_t shape[3] = {int64_t{1} << 40, 2, 2}, repeated[3] = {0, 2, 1}, windows[3] = {0, 0, 1};
  const auto compare = [&](const int64_t* a, const int64_t* b) {
    return CompareTensors({v, DType::kFloat32, 3, shape, a}, {w, DType::kFloat32, 3, shape, b});
  };
  // Repeated on both sides: each element is read once.
  const TensorMetrics m = compare(repeated, repeated);
  EXPECT_EQ(m.count, int64_t{4} << 40);
  EXPECT_EQ(m.equal, int64_t{3} << 40);
  EXPECT_EQ(m.euc_dist, 0x1p20);
  EXPECT_EQ(m.rms_diff, 0.5);
  EXPECT_EQ(compare(repeated, windows).state, PairState::kCompared);
  const int64_t square[2] = {int64_t{1} << 30, int64_t{1} << 30}, rows[2] = {0, 1}, columns[2] = {1, 0};
  EXPECT_EQ(CompareTensors({v, DType::kFloat32, 2, square, rows}, {w, DType::kFloat32, 2, square, columns}).state,
            PairState::kNoNumbers);
}

TEST(MetricsValues, AnInterruptLeavesNoHalfResult) {
  SetInterruptRequested(true);
  const TensorMetrics m = Compare(Floats({1, 2}), Floats({1, 3}));
  SetInterruptRequested(false);
  EXPECT_EQ(m.state, PairState::kNoNumbers);
  EXPECT_EQ(Compare(Floats({1, 2}), Floats({1, 3})).state, PairState::kCompared);
}

TEST(MetricsValues, IdenticalTensorsHaveTheCosineOne) {
  const TensorMetrics m = Compare(Floats({0.1f, 0.7f, 3e-3f}), Floats({0.1f, 0.7f, 3e-3f}));
  EXPECT_TRUE(m.identical);
  EXPECT_EQ(m.cosine, 1);
}

TEST(MetricsValues, WhatHoldsNoNumbers) {
  const int64_t n = 3, huge[2] = {INT64_MAX, 4};
  const float v[3] = {};
  EXPECT_EQ(CompareTensors({v, DType::kUnknown, 1, &n, nullptr}, {v, DType::kFloat32, 1, &n, nullptr}).state,
            PairState::kNoNumbers);
  EXPECT_EQ(CompareTensors({v, DType::kFloat32, 2, huge, nullptr}, {v, DType::kFloat32, 1, &n, nullptr}).state,
            PairState::kNoNumbers);
}

}  // namespace
}  // namespace msprobe
