#include "tensor/metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

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

}  // namespace
}  // namespace msprobe
