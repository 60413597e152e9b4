#include "ops/framework_names.h"

#include <gtest/gtest.h>

namespace msprobe {
namespace {

TEST(FrameworkNames, FunctionsOfBoth) {
  for (const char* api : {"linear", "bmm", "__matmul__", "BatchMatMul", "MatMulExt", "batch_matmul", "dense"}) {
    EXPECT_EQ(CommonFunctionOf(api).name, "matmul") << api;
    EXPECT_FALSE(CommonFunctionOf(api).moves) << api;
  }
  EXPECT_EQ(CommonFunctionOf("ReduceMean").name, "mean");
  EXPECT_EQ(CommonFunctionOf("__iadd__").name, "add");
  EXPECT_EQ(CommonFunctionOf("swapaxes").name, "transpose");
  EXPECT_TRUE(CommonFunctionOf("swapaxes").moves);
  EXPECT_EQ(CommonFunctionOf("gather_d").name, "gather");
  EXPECT_EQ(CommonFunctionOf("Erfinv").name, "erfinv");
}

TEST(FrameworkNames, Classes) {
  EXPECT_EQ(CommonClassOf("Dense").name, "linear");
  EXPECT_TRUE(CommonClassOf("ColumnParallelLinear").layer);
  EXPECT_EQ(CommonClassOf("LlamaRMSNorm").name, "rms_norm");
  EXPECT_EQ(CommonClassOf("LlamaAttention").name, CommonClassOf("SelfAttention").name);
  EXPECT_EQ(CommonClassOf("FeedForward").name, CommonClassOf("LlamaMLP").name);
  EXPECT_FALSE(CommonClassOf("LlamaMLP").layer);
  EXPECT_EQ(CommonClassOf("Net").name, "net");
  EXPECT_EQ(CommonClassOf("").name, "");
}

TEST(FrameworkNames, Parameters) {
  EXPECT_EQ(CommonParameter("gamma"), "weight");
  EXPECT_EQ(CommonParameter("moving_variance"), "running_var");
  EXPECT_EQ(CommonParameter("bias"), "bias");
}

TEST(FrameworkNames, Arguments) {
  EXPECT_EQ(CommonArgumentOf("axis").name, "dim");
  EXPECT_EQ(CommonArgumentOf("epsilon").name, CommonArgumentOf("eps").name);
  EXPECT_EQ(CommonArgumentOf("approximate").otherwise, "none");
  EXPECT_EQ(CommonArgumentOf("training").name, "");
}

}  // namespace
}  // namespace msprobe
