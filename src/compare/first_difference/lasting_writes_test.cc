// What a step writes for later steps to read: its own loss says nothing of it.
#include "compare/test_findings.h"

namespace msprobe {
namespace {

class LastingWritesTest : public FindingsTest {
 protected:
  static std::string Of(double max, double min, double mean, double norm) {
    return fmt::format(
        R"({{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [6], "Max": {}, "Min": {}, "Mean": {},
            "Norm": {}}})",
        max, min, mean, norm);
  }
  /// A step whose loss and gradients are the same in both runs; `kept` stands between its ops.
  void WriteStep(const std::string& side, const std::vector<std::string>& kept) {
    std::vector<std::string> ops = {Call("Functional.linear.0.forward", Wide(2), Wide(3))};
    ops.insert(ops.end(), kept.begin(), kept.end());
    for (const std::string& op :
         {Call("Functional.relu.0.forward", Wide(3), Wide(2.5)),
          Call("Functional.mse_loss.0.forward", Wide(2.5), Wide(0.5)),
          Call("Functional.mse_loss.0.backward", Wide(1), Wide(0.7)),
          Call("Functional.relu.0.backward", Wide(0.7), Wide(0.6)),
          Call("Functional.linear.0.backward", Wide(0.6), Wide(0.4)),
          Call("Tensor.add_.1.forward", Wide(5) + ", " + Wide(0.4), Wide(4.9), R"("alpha": )" + Number(-0.1))})
      ops.push_back(op);
    Write(side, ops);
  }
  /// Counts of which the mean is taken off, or the other way round, and the signs of that.
  std::vector<std::string> Signs(bool exchanged) const {
    const std::string mean = msprobe::TensorOf("", 3, 3), load = Of(6, 1, 3, 9);
    const std::string difference = exchanged ? Of(2, -3, 0, 4.4) : Of(3, -2, 0, 4.4);
    return {Call("Tensor.__sub__.0.forward", exchanged ? mean + ", " + load : load + ", " + mean, difference),
            Call("Torch.sign.0.forward", difference, signs_)};
  }
  std::vector<std::string> Written(bool exchanged) const {
    std::vector<std::string> out = Signs(exchanged);
    out.push_back(Call("Tensor.add_.0.forward", Of(0, 0, 0, 0) + ", " + signs_, Of(0.05, -0.05, 0, 0.12)));
    return out;
  }
  const std::string signs_ = Of(1, -1, 0, 2.4);
};

TEST_F(LastingWritesTest, TheLossDoesNotExcuseWhatABufferIsMadeOf) {
  WriteStep("t", Written(true));
  WriteStep("g", Written(false));
  const Differences d = Find();
  EXPECT_EQ(d.Answer().kind, Kind::kInput);
  EXPECT_EQ(d.Answer().name, "Tensor.__sub__.0.forward");
}

TEST_F(LastingWritesTest, OperandsInOtherPlacesAreNoDifferenceWhereTheResultAgrees) {
  const std::string mean = msprobe::TensorOf("", 3, 3), load = Of(6, 1, 3, 9), sum = Of(9, 4, 6, 15);
  Write("t", {Call("Tensor.__add__.0.forward", mean + ", " + load, sum), Call("Torch.exp.0.forward", sum, sum)});
  Write("g", {Call("Tensor.__add__.0.forward", load + ", " + mean, sum), Call("Torch.exp.0.forward", sum, sum)});
  EXPECT_EQ(Find().Answer().kind, Kind::kNone) << Find().Answer().name;
  const std::string other = Of(8, 4, 6, 15);
  Write("t", {Call("Tensor.__add__.0.forward", mean + ", " + load, other), Call("Torch.exp.0.forward", other, sum)});
  EXPECT_EQ(Find().Answer().kind, Kind::kInput);
  EXPECT_EQ(Find().Answer().name, "Tensor.__add__.0.forward");
}

TEST_F(LastingWritesTest, WhatTheStepItselfTakesInIsExcused) {
  for (const bool target : {true, false}) {
    std::vector<std::string> kept = Written(target);
    kept.push_back(Call("Torch.abs.0.forward", Of(0.05, -0.05, 0, 0.12), Of(0.05, 0, 0.05, 0.12)));
    WriteStep(target ? "t" : "g", kept);
  }
  EXPECT_EQ(Find().Answer().kind, Kind::kNone) << Find().Answer().name;
}

TEST_F(LastingWritesTest, SoIsWhatGoesNowhere) {
  WriteStep("t", Signs(true));
  WriteStep("g", Signs(false));
  EXPECT_EQ(Find().Answer().kind, Kind::kNone) << Find().Answer().name;
}

TEST_F(LastingWritesTest, AndWhatIsMadeOfOtherTensors) {
  std::vector<std::string> other = Written(false);
  other[0] =
      Call("Tensor.__sub__.0.forward", Of(7, 1, 3, 9.5) + ", " + msprobe::TensorOf("", 4, 4), Of(3, -2.5, 0, 4.4));
  WriteStep("t", other);
  WriteStep("g", Written(false));
  EXPECT_EQ(Find().Answer().kind, Kind::kNone) << Find().Answer().name;
}

}  // namespace
}  // namespace msprobe
