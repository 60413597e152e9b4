// Of two frameworks an operator may take a number in one run and a tensor in the other.
#include "compare/test_findings.h"

namespace msprobe {
namespace {

class OtherOperandTest : public DifferencesTest {
 protected:
  static std::string Of(const std::string& framework, const std::string& shape, double norm) {
    const bool torch = framework == "pytorch";
    return fmt::format(
        R"({{"type": "{}", "dtype": "{}", "shape": [{}], "Max": {}, "Min": {}, "Mean": {}, "Norm": {}}})",
        torch ? "torch.Tensor" : "mindspore.Tensor", torch ? "torch.float32" : "Float32", shape, norm / 3, -norm / 6,
        norm / 12, norm);
  }
  static std::string Count(int v) { return fmt::format(R"({{"type": "int", "value": {}}})", v); }
  /// A mean over what is not padded, or over all.
  void WriteRun(const std::string& side, const std::string& framework, const std::string& divisor, double out) {
    const auto of = [&](const std::string& shape, double norm) { return Of(framework, shape, norm); };
    const std::vector<std::string> ops = {
        Call("Functional.relu.0.forward", of("12, 8", 4), of("12, 8", 3)),
        Call("Tensor.__truediv__.0.forward", of("12, 8", 3) + ", " + divisor, of("12, 8", out)),
        Call("Functional.tanh.0.forward", of("12, 8", out), of("12, 8", out / 2))};
    dir_.Write(side + "/dump.json", fmt::format(R"({{"task": "statistics", "level": "L1", "framework": "{}",
                                                   "data": {{{}}}}})",
                                                framework, fmt::join(ops, ", ")));
  }
};

TEST_F(OtherOperandTest, IsToldAsTheArgument) {
  WriteRun("t", "mindspore", Count(6), 0.5);
  WriteRun("g", "pytorch", Of("pytorch", "12, 1", 9), 1);
  Differences d = Find();
  EXPECT_EQ(d.Answer().kind, Kind::kArgument);
  EXPECT_EQ(d.Answer().name, "Tensor.__truediv__.0.forward");
  EXPECT_EQ(d.Answer().detail, "is 6 against [12, 1]");
  WriteRun("t", "mindspore", Of("mindspore", "12, 1", 9), 1);
  WriteRun("g", "pytorch", Count(6), 0.5);
  d = Find();
  EXPECT_EQ(d.Answer().detail, "is [12, 1] against 6");
  WriteRun("t", "mindspore", Count(7), 0.4);
  EXPECT_EQ(Find().Answer().detail, "is 7 against 6");
}

TEST_F(OtherOperandTest, SaysNothingWhereTheResultAgrees) {
  WriteRun("t", "mindspore", Count(6), 1);
  WriteRun("g", "pytorch", Of("pytorch", "12, 1", 9), 1);
  EXPECT_EQ(Find().Answer().kind, Kind::kNone);
}

TEST_F(OtherOperandTest, LeavesAnOpThatComputesOtherwiseAnOp) {
  WriteRun("t", "mindspore", Count(6), 0.5);
  WriteRun("g", "pytorch", Count(6), 1);
  EXPECT_EQ(Find().Answer().kind, Kind::kOp);
}

}  // namespace
}  // namespace msprobe
