// Where no module is known, the place of a tensor in a call tells that it is a weight.
#include "compare/test_findings.h"

namespace msprobe {
namespace {

class WeightPlaceTest : public FindingsTest {
 protected:
  /// As MindSpore shows it: whether it requires gradients is not told.
  static std::string Of(const std::string& shape, double norm) {
    return fmt::format(
        R"({{"type": "mindspore.Tensor", "dtype": "Float32", "shape": [{}], "Max": {}, "Min": {}, "Mean": {},
            "Norm": {}}})",
        shape, norm / 3, -norm / 6, norm / 12, norm);
  }
  void WriteCall(const std::string& side, const std::string& op, const std::string& second) {
    Write(side, {Call(op, Of("4, 8", 3) + ", " + second, Of("4, 8", 5))});
  }
  Kind KindOf(const std::string& op, const std::string& shape) {
    WriteCall("t", op, Of(shape, 2));
    WriteCall("g", op, Of(shape, 2.001));
    return Find().Answer().kind;
  }
};

TEST_F(WeightPlaceTest, APrimitiveOfACellTakesItsWeightsThere) {
  EXPECT_EQ(KindOf("Primitive.bias_add.BiasAdd.0.forward", "8"), Kind::kParameter);
  EXPECT_EQ(KindOf("Primitive.own_name.Conv2D.0.forward", "8, 3, 3, 3"), Kind::kParameter);
  EXPECT_EQ(KindOf("Primitive.matmul.MatMul.0.forward", "8, 8"), Kind::kParameter);
  EXPECT_EQ(KindOf("Functional.dense.0.forward", "8, 8"), Kind::kParameter);
  EXPECT_EQ(KindOf("Primitive.layer_norm.LayerNorm.0.forward", "8"), Kind::kParameter);
}

TEST_F(WeightPlaceTest, OtherPlacesTakeData) {
  EXPECT_EQ(KindOf("Primitive.batch_matmul.BatchMatMul.0.forward", "2, 8, 8"), Kind::kInput);
  EXPECT_EQ(KindOf("Primitive.matmul.MatMul.0.forward", "2, 8, 8"), Kind::kInput);
  EXPECT_EQ(KindOf("Primitive.add.Add.0.forward", "8"), Kind::kInput);
  EXPECT_EQ(KindOf("Functional.matmul.0.forward", "8, 8"), Kind::kInput);
  WriteCall("t", "Primitive.bias_add.BiasAdd.0.forward", Of("8", 2));
  Write("g", {Call("Primitive.bias_add.BiasAdd.0.forward", Of("4, 8", 3.1) + ", " + Of("8", 2), Of("4, 8", 5))});
  EXPECT_EQ(Find().Answer().kind, Kind::kInput);
}

}  // namespace
}  // namespace msprobe
