// Where data came in, other data did, too.
#include "compare/test_findings.h"

namespace msprobe {
namespace {

class OtherDataTest : public FindingsTest {
 protected:
  static std::string Ids(double norm, const std::string& shape = "4, 8") {
    return fmt::format(
        R"({{"type": "torch.Tensor", "dtype": "torch.int64", "shape": [{}], "Max": {}, "Min": 0, "Mean": {},
            "Norm": {}}})",
        shape, norm / 4, norm / 32, norm);
  }
  /// Ids are looked up twice, and a loss takes labels.
  void WriteRun(const std::string& side, double ids, double labels, double out, double loss) {
    const std::string weight = TensorOf("32, 8", 1, 9);
    Write(side, {Call("Functional.embedding.0.forward", Ids(ids) + ", " + weight, Wide(out)),
                 Call("Functional.one_hot.0.forward", Ids(ids), Ids(ids / 2)),
                 Call("Tensor.gather.0.forward", Wide(out) + ", " + Ids(ids / 2, "32"), Wide(out / 2)),
                 Call("Functional.cross_entropy.0.forward", Wide(out / 2) + ", " + Ids(labels, "32"),
                      TensorOf("", loss, loss))});
  }
};

TEST_F(OtherDataTest, IsToldBesideTheFirst) {
  WriteRun("t", 40, 36, 5, 3);
  WriteRun("g", 44, 48, 6, 4);
  const Differences d = Find();
  EXPECT_EQ(d.Answer().kind, Kind::kInput);
  EXPECT_EQ(d.Answer().name, "Functional.embedding.0.forward");
  EXPECT_EQ(d.first.kind, Kind::kNone) << "an op that is given other ids is not to blame: " << d.first.name;
  ASSERT_EQ(d.others.size(), 1U);
  EXPECT_EQ(d.others[0].kind, Kind::kInput);
  EXPECT_EQ(d.others[0].name, "Functional.cross_entropy.0.forward");
  EXPECT_EQ(d.others[0].item, ".input.1");
}

TEST_F(OtherDataTest, LabelsThatAgreeAreNot) {
  WriteRun("t", 40, 48, 5, 3);
  WriteRun("g", 44, 48, 6, 4);
  EXPECT_TRUE(Find().others.empty());
}

}  // namespace
}  // namespace msprobe
