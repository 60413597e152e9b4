// x[...] = value: results of assignments are not recorded, what they are given is.
#include "compare/test_findings.h"

namespace msprobe {
namespace {

class AssignedValuesTest : public FindingsTest {
 protected:
  static std::string Ids(const std::string& shape, double norm) {
    return fmt::format(
        R"({{"type": "torch.Tensor", "dtype": "torch.int64", "shape": [{}], "Max": {}, "Min": 0, "Mean": {},
            "Norm": {}}})",
        shape, norm / 4, norm / 32, norm);
  }
  /// Labels, moved by one, are what a decoder starts from.
  void WriteRun(const std::string& side, double buffer, double value, double moved) {
    const std::string place = R"([{"type": "slice", "value": [1, null, null]}])";
    Write(side,
          {Call("Functional.relu.0.forward", Wide(3), Wide(2)),
           Call("Tensor.__setitem__.0.forward", Ids("4, 8", buffer) + ", " + place + ", " + Ids("4, 7", value), "null"),
           Call("Tensor.__eq__.0.forward", Ids("4, 8", moved) + ", " + Number(-100), Ids("4, 8", moved / 9)),
           Call("Functional.embedding.0.forward", Ids("4, 8", moved) + ", " + TensorOf("32, 8", 1, 9), Wide(moved))});
  }
};

TEST_F(AssignedValuesTest, TheValueIsWhereItCameIn) {
  WriteRun("t", 0, 36, 36);
  WriteRun("g", 0, 48, 48);
  const Differences d = Find();
  EXPECT_EQ(d.Answer().kind, Kind::kInput);
  EXPECT_EQ(d.Answer().name, "Tensor.__setitem__.0.forward");
  EXPECT_EQ(d.Answer().item, ".input.2");
  EXPECT_TRUE(d.others.empty());
}

TEST_F(AssignedValuesTest, AValueThatAgreesIsNot) {
  WriteRun("t", 0, 40, 36);
  WriteRun("g", 0, 40, 48);
  EXPECT_EQ(Find().Answer().name, "Tensor.__eq__.0.forward");
}

TEST_F(AssignedValuesTest, NorWhereTheTensorDifferedBefore) {
  WriteRun("t", 30, 36, 36);
  WriteRun("g", 20, 48, 48);
  EXPECT_EQ(Find().Answer().name, "Tensor.__eq__.0.forward");
}

}  // namespace
}  // namespace msprobe
