#include "compare/round_off/ruler.h"

#include <gtest/gtest.h>

#include <limits>

#include "json/parser.h"

namespace msprobe {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// An op with one input and one output whose Norm, and all else, is as given.
std::string Entry(const std::string& in, const std::string& out) {
  const auto tensor = [](const std::string& v) {
    return R"({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "Max": )" + v + R"(, "Min": )" + v +
           R"(, "Mean": )" + v + R"(, "Norm": )" + v + "}";
  };
  return R"({"input_args": [)" + tensor(in) + R"(], "input_kwargs": {}, "output": [)" + tensor(out) + "]}";
}

class ShownErrorTest : public testing::Test {
 protected:
  void Diff(const std::string& target, const std::string& golden) {
    ASSERT_TRUE(ParseJson(target, "op", &a_).ok());
    ASSERT_TRUE(ParseJson(golden, "op", &b_).ok());
    DiffOps("F.f.0.forward", a_, "F.f.0.forward", &b_, {}, &op_);
  }
  JsonDoc a_, b_;
  OpDiff op_;
};

TEST_F(ShownErrorTest, IsRelativeToTheGoldenRunAsNormRelativeErr) {
  Diff(Entry("2", "12.5"), Entry("2", "10"));
  EXPECT_DOUBLE_EQ(op_.rows[1].diff[kNorm].rel, 25);
  EXPECT_DOUBLE_EQ(ShownError(op_, 1, CompareMode::kStatistics), 0.25);
  EXPECT_DOUBLE_EQ(RowError(op_, 1, CompareMode::kStatistics), 0.2) << "judging does not depend on the sides";
  const ShownErrors both = ShownErrorsOf(op_, CompareMode::kStatistics);
  EXPECT_EQ(both.input, 0);
  EXPECT_DOUBLE_EQ(both.output, 0.25);

  Diff(Entry("2", "10"), Entry("2", "12.5"));
  EXPECT_DOUBLE_EQ(ShownError(op_, 1, CompareMode::kStatistics), 0.2);
}

TEST_F(ShownErrorTest, HasNoSizeAgainstZero) {
  Diff(Entry("2", "1e-20"), Entry("2", "0"));
  EXPECT_EQ(ShownError(op_, 1, CompareMode::kStatistics), kInfinity);
  Diff(Entry("2", "0"), Entry("2", "0"));
  EXPECT_EQ(ShownError(op_, 1, CompareMode::kStatistics), 0);
}

TEST_F(ShownErrorTest, TheColumnShowsIt) {
  Diff(Entry("2", "12.5"), Entry("2", "10"));
  OpDistance distance = DistanceOf(op_, CompareMode::kStatistics);
  RulerContext context;
  context.verdict = RulerVerdict::kBug;
  MeasureRows(CompareMode::kStatistics, distance, context, &op_);
  ASSERT_EQ(op_.ruler.size(), 2u);
  EXPECT_EQ(op_.ruler[0].verdict, RulerVerdict::kBitEqual);
  EXPECT_EQ(op_.ruler[1].verdict, RulerVerdict::kBug);
  EXPECT_DOUBLE_EQ(op_.ruler[1].error, 0.25);
}

}  // namespace
}  // namespace msprobe
