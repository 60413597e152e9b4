#include "tensor/kernels/dtype.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tensor/kernels/finfo.h"
#include "tensor/kernels/stats_kernels.h"

namespace msprobe {
namespace {

TEST(DType, NamesRoundTrip) {
  for (int i = 0; i < static_cast<int>(DType::kUnknown); ++i) {
    const auto t = static_cast<DType>(i);
    EXPECT_FALSE(DTypeName(t).empty());
    EXPECT_EQ(ParseDType(DTypeName(t)), t);
    EXPECT_EQ(ParseDType("torch." + std::string(DTypeName(t))), t);
    EXPECT_GT(ElementSize(t), 0u);
    EXPECT_EQ(IsFloating(t) + IsInteger(t) + IsComplex(t) + (t == DType::kBool), 1);
  }
  EXPECT_EQ(ElementSize(DType::kUnknown), 0u);
  EXPECT_EQ(DTypeName(DType::kUnknown), "");
}

TEST(DType, SpellingsOfTheFrameworks) {
  EXPECT_EQ(ParseDType("torch.bfloat16"), DType::kBFloat16);
  EXPECT_EQ(ParseDType("BFloat16"), DType::kBFloat16);
  EXPECT_EQ(ParseDType("mindspore.float32"), DType::kFloat32);
  EXPECT_EQ(ParseDType("Float32"), DType::kFloat32);
  EXPECT_EQ(ParseDType("torch.long"), DType::kInt64);
  EXPECT_EQ(ParseDType("Bool"), DType::kBool);
  EXPECT_EQ(ParseDType("torch.float8_e4m3fn"), DType::kFloat8E4M3FN);
  EXPECT_EQ(ParseDType("torch.Size"), DType::kUnknown);
  EXPECT_EQ(ParseDType("jax.float32"), DType::kUnknown);
  EXPECT_EQ(ParseDType(""), DType::kUnknown);
  EXPECT_EQ(ElementSize(DType::kComplex128), 16u);
  EXPECT_EQ(ElementSize(DType::kFloat8E8M0FNU), 1u);
}

/// All finite values of a type of eight bits.
std::vector<double> ValuesOf(DType t) {
  std::vector<double> out;
  for (int b = 0; b < 256; ++b) {
    const double v = static_cast<double>(stats::Float8ToFloat(t, static_cast<uint8_t>(b)));
    if (std::isfinite(v)) out.push_back(v);
  }
  std::sort(out.begin(), out.end());
  return out;
}

TEST(DType, FiguresOfFloat8AreThoseOfItsValues) {
  for (const DType t : {DType::kFloat8E4M3FN, DType::kFloat8E5M2, DType::kFloat8E4M3FNUZ, DType::kFloat8E5M2FNUZ,
                        DType::kFloat8E8M0FNU}) {
    SCOPED_TRACE(DTypeName(t));
    const std::vector<double> values = ValuesOf(t);
    EXPECT_EQ(InfoOf(t).largest, values.back());
    EXPECT_EQ(InfoOf(t).lowest, values.front());
    const auto one = std::find(values.begin(), values.end(), 1.0);
    EXPECT_EQ(InfoOf(t).eps(), one[1] - one[0]);
    for (const double v : values) EXPECT_EQ(NearestOf(t, v), v);
    for (size_t i = 1; i < values.size(); ++i) {
      if (values[i - 1] > 0) EXPECT_EQ(values[i] - values[i - 1], UlpAt(values[i - 1], t)) << values[i - 1];
    }
  }
}

TEST(DType, NothingIsKnownOfUnknown) {
  EXPECT_EQ(InfoOf(DType::kUnknown).kind, NumberKind::kNone);
  EXPECT_EQ(InfoOf(DType::kUnknown).largest, 0);
  EXPECT_EQ(InfoOf(static_cast<DType>(250)).kind, NumberKind::kNone);
}

TEST(DType, ComplexHasTheFiguresOfItsParts) {
  EXPECT_EQ(InfoOf(DType::kComplex32).real, DType::kFloat16);
  EXPECT_EQ(InfoOf(DType::kComplex32).eps(), 0x1p-10);
  EXPECT_EQ(InfoOf(DType::kComplex128).largest, std::numeric_limits<double>::max());
  EXPECT_EQ(InfoOf(DType::kComplex64).bits(), 64);
}

TEST(DType, RoundsToNearest) {
  EXPECT_EQ(NearestOf(DType::kFloat16, 65519), 65504);
  EXPECT_EQ(NearestOf(DType::kFloat16, 65520), std::numeric_limits<double>::infinity());
  EXPECT_EQ(NearestOf(DType::kBFloat16, 1 + 0x1p-8), 1);
  EXPECT_EQ(NearestOf(DType::kBFloat16, 1 + 3 * 0x1p-8), 1 + 0x1p-6);
  EXPECT_EQ(NearestOf(DType::kFloat16, 0x1p-25), 0);
  EXPECT_EQ(NearestOf(DType::kFloat32, 1 + 0x1p-30), 1);
  EXPECT_EQ(NearestOf(DType::kInt8, 1000.5), 1000.5);
  EXPECT_EQ(UlpAt(5, DType::kInt64), 1);
}

}  // namespace
}  // namespace msprobe
