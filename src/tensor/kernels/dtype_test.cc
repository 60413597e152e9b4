#include "tensor/kernels/dtype.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace msprobe
