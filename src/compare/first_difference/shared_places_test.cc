// One tensor at several places of a call: one run may show the gradient of all of them at each.
#include "compare/test_findings.h"

namespace msprobe {
namespace {

class SharedPlacesTest : public FindingsTest {
 protected:
  static std::string Of(double max, double min, double mean, double norm) {
    return fmt::format(
        R"({{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [4, 8], "Max": {}, "Min": {}, "Mean": {},
            "Norm": {}}})",
        max, min, mean, norm);
  }
  void WriteRun(const std::string& side, const std::string& second, const std::string& gradients) {
    const std::string x = Of(2, -1, 0.25, 4), seed = Of(0.5, 0.5, 0.5, 2.8284271);
    Write(side, {Call("Tensor.__mul__.0.forward", x + ", " + second, Of(4, 0, 1, 5)),
                 Call("Tensor.__mul__.0.backward", seed, gradients), Call("Tensor.exp.0.backward", seed, seed)});
  }
  const std::string x_ = Of(2, -1, 0.25, 4);
  const std::string share_ = Of(1, -0.5, 0.125, 2), whole_ = Of(2, -1, 0.25, 4);
};

TEST_F(SharedPlacesTest, TheWholeGradientAtEachPlaceIsNoDifference) {
  for (const bool target : {true, false}) {
    WriteRun(target ? "t" : "g", x_, whole_ + ", " + whole_);
    WriteRun(target ? "g" : "t", x_, share_ + ", " + share_);
    EXPECT_EQ(Find().Answer().kind, Kind::kNone) << Find().Answer().name;
  }
}

TEST_F(SharedPlacesTest, SharesOfOtherSignsAddUpToNothing) {
  WriteRun("t", x_, Of(0, 0, 0, 0) + ", " + Of(0, 0, 0, 0));
  WriteRun("g", x_, share_ + ", " + Of(0.5, -1, -0.125, 2));
  EXPECT_EQ(Find().Answer().kind, Kind::kNone) << Find().Answer().name;
}

TEST_F(SharedPlacesTest, AnotherFactorIsADifference) {
  WriteRun("t", x_, Of(3, -1.5, 0.375, 6) + ", " + Of(3, -1.5, 0.375, 6));
  WriteRun("g", x_, share_ + ", " + share_);
  EXPECT_EQ(Find().Answer().name, "Tensor.__mul__.0.backward");
}

TEST_F(SharedPlacesTest, SoIsTheFactorWhereTwoTensorsAreGiven) {
  const std::string other = Of(2, -1.5, 0.25, 4);
  WriteRun("t", other, whole_ + ", " + whole_);
  WriteRun("g", other, share_ + ", " + share_);
  EXPECT_EQ(Find().Answer().name, "Tensor.__mul__.0.backward");
}

TEST_F(SharedPlacesTest, AndTheShareOfOnePlaceAlone) {
  WriteRun("t", x_, whole_ + ", " + share_);
  WriteRun("g", x_, share_ + ", " + share_);
  EXPECT_EQ(Find().Answer().name, "Tensor.__mul__.0.backward");
}

}  // namespace
}  // namespace msprobe
