// Two programs for one model: what is computed another way is no difference, what comes of it may be.
#include "compare/test_findings.h"

namespace msprobe {
namespace {

std::string Ids(const std::string& shape) {
  return fmt::format(
      R"({{"type": "torch.Tensor", "dtype": "torch.int64", "shape": [{}], "Max": 19, "Min": 0, "Mean": 9.5,
          "Norm": 49.7}})",
      shape);
}

class OtherCallTest : public FindingsTest {
 protected:
  /// Angles of positions, by a class of its own in each run.
  void WriteAngles(double angle, double after) {
    const auto parents = [](const std::string& type) {
      const std::string module = "Module.rotary." + type + ".forward.0";
      return fmt::format(R"("Tensor.cos.0.forward": "{0}", "{0}": null)", module);
    };
    const std::string embed = Call("Functional.embedding.0.forward", Ids("2, 20"), Wide(2));
    Write(
        "g",
        {embed, Call("Tensor.cos.0.forward", msprobe::TensorOf("1, 20, 8", 1, 9), msprobe::TensorOf("1, 20, 8", 1, 8)),
         Call("Module.rotary.RotaryEmbedding.forward.0", msprobe::TensorOf("2, 20, 64", 1, 4),
              msprobe::TensorOf("1, 20, 8", 1, 8), R"("position_ids": )" + Ids("1, 20")),
         Call("Functional.linear.0.forward", Wide(2), Wide(3))},
        parents("RotaryEmbedding"));
    Write("t",
          {embed,
           Call("Tensor.cos.0.forward", msprobe::TensorOf("20, 8", 1, angle + 1), msprobe::TensorOf("20, 8", 1, angle)),
           Call("Module.rotary.Angles.forward.0", Ids("20"), msprobe::TensorOf("20, 8", 1, angle)),
           Call("Functional.linear.0.forward", Wide(2), Wide(after))},
          parents("Angles"));
  }
};

TEST_F(OtherCallTest, ArgumentsOfAnotherClassAreNotHeldAgainstEachOther) {
  WriteAngles(8, 3);
  EXPECT_EQ(Find().Answer().kind, Kind::kNone) << Find().Answer().name;
}

TEST_F(OtherCallTest, WhatItGivesIs) {
  WriteAngles(7, 3.2);
  const Differences d = Find();
  EXPECT_EQ(d.Answer().kind, Kind::kOp);
  EXPECT_EQ(d.Answer().name, "Module.rotary.Angles.forward.0");
  EXPECT_EQ(d.Answer().item, ".output.0");
  EXPECT_TRUE(d.Answer().other_call);
}

TEST_F(OtherCallTest, OfOneClassOtherArgumentsAreADifference) {
  const auto run = [](const std::string& mask) {
    return Call("Module.attention.Attention.forward.0", Wide(1) + ", " + mask, Wide(2));
  };
  Write("t", {run(msprobe::TensorOf("4, 4", 1, 2))});
  Write("g", {run(msprobe::TensorOf("4, 8", 1, 2))});
  EXPECT_NE(Find().Answer().kind, Kind::kNone);
}

class FormulaTest : public FindingsTest {
 protected:
  /// x * sigmoid(ax) and x / (1 + exp(-ax)).
  void WriteGelu(double factor, double out) {
    const std::string x = msprobe::TensorOf("4, 8", 1, 3);
    const auto parents = [](const std::vector<std::string>& ops) {
      std::string text;
      for (const std::string& op : ops) text += fmt::format(R"("{}": "Module.mlp.Mlp.forward.0", )", op);
      return text + R"("Module.mlp.Mlp.forward.0": null)";
    };
    const std::string loss = Call("Functional.mse_loss.0.forward", Wide(out), Wide(out / 4));
    Write("g",
          {Call("Tensor.__rmul__.0.forward", x + ", " + Number(1.702), msprobe::TensorOf("4, 8", 1.7, 5.1)),
           Call("Functional.sigmoid.0.forward", msprobe::TensorOf("4, 8", 1.7, 5.1), msprobe::TensorOf("4, 8", 0.8, 3)),
           Call("Module.mlp.Mlp.forward.0", x, Wide(2)), Call("Functional.mse_loss.0.forward", Wide(2), Wide(0.5))},
          parents({"Tensor.__rmul__.0.forward", "Functional.sigmoid.0.forward"}));
    Write("t",
          {Call("Tensor.__rmul__.0.forward", x + ", " + Number(factor), msprobe::TensorOf("4, 8", factor / 2, 5.1)),
           Call("Functional.exp.0.forward", msprobe::TensorOf("4, 8", factor / 2, 5.1),
                msprobe::TensorOf("4, 8", 2.3, 6)),
           Call("Module.mlp.Mlp.forward.0", x, Wide(out)), loss},
          parents({"Tensor.__rmul__.0.forward", "Functional.exp.0.forward"}));
  }
};

TEST_F(FormulaTest, ANumberWithTheOtherSignIsNoSettingWhereTheResultIsTheSame) {
  WriteGelu(-1.702, 2);
  EXPECT_EQ(Find().Answer().kind, Kind::kNone) << Find().Answer().name;
}

TEST_F(FormulaTest, ItIsOneWhereTheResultIsAnother) {
  WriteGelu(-1.9, 2.2);
  EXPECT_EQ(Find().Answer().kind, Kind::kArgument);
}

/// Nothing says what softmax takes by default: its dimension stands at its place in one run and has its name in the
/// other.
TEST_F(FindingsTest, AnArgumentByItsPlaceIsTheSameByItsName) {
  const auto whole = [](int v) { return fmt::format(R"({{"type": "int", "value": {}}})", v); };
  const std::string named =
      R"("dim": {"type": "int", "value": -1}, "dtype": {"type": "torch.dtype", "value": "torch.float32"})";
  const std::string after = Call("Functional.relu.0.forward", Wide(2), Wide(1));
  Write("g", {Call("Functional.softmax.0.forward", Wide(1), Wide(2), named), after});
  Write("t", {Call("Functional.softmax.0.forward", Wide(1) + ", " + whole(-1), Wide(2)), after});
  EXPECT_EQ(Find().Answer().kind, Kind::kNone) << Find().Answer().name;
  Write("t", {Call("Functional.softmax.0.forward", Wide(1) + ", " + whole(-2), Wide(2.5)), after});
  EXPECT_EQ(Find().Answer().kind, Kind::kArgument);
}

class NormModeTest : public FindingsTest {
 protected:
  static std::string Centred(const std::string& shape, double mean, double norm) {
    return fmt::format(
        R"({{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [{}], "Max": 3, "Min": -3, "Mean": {},
            "Norm": {}}})",
        shape, mean, norm);
  }
  /// A norm whose offsets have the mean 0.25, and what it keeps.
  static std::vector<std::string> Run(double mean, double norm, double kept) {
    return {Call("Module.bn.BatchNorm2d.forward.0", Wide(2), Centred("8, 8", mean, norm), "",
                 R"("beta": )" + Centred("8", 0.25, 1) + R"(, "moving_mean": )" + Centred("8", 0.01, kept))};
  }
};

TEST_F(NormModeTest, RunningStatisticsPartByTheMode) {
  Write("t", Run(0.31, 8.2, 0.5));
  Write("g", Run(0.25, 8, 0.6));
  Differences d = Find();
  EXPECT_EQ(d.Answer().kind, Kind::kOp);
  EXPECT_EQ(d.Answer().item, ".output.0");
  EXPECT_TRUE(d.Answer().other_mode);
  EXPECT_TRUE(d.Answer().evaluates);
  EXPECT_EQ(d.Answer().inputs, "are equal");
  // Both in evaluation: what was kept is to blame.
  Write("g", Run(0.35, 8, 0.6));
  d = Find();
  EXPECT_EQ(d.Answer().kind, Kind::kParameter);
  EXPECT_EQ(d.Answer().parameter, "moving_mean");
}

/// Differences that add up on the way to a loss and gradients that agree: nothing says that something is wrong.
TEST_F(FindingsTest, WhatAddsUpIsNoOriginWhereTheLossAndTheGradientsAgree) {
  const auto run = [](double a, double b, double loss) {
    return std::vector{Call("Functional.gelu.0.forward", Wide(1), Wide(a)),
                       Call("Functional.silu.0.forward", Wide(a), Wide(b)),
                       Call("Functional.mse_loss.0.forward", Wide(b), Wide(loss)),
                       Call("Functional.mse_loss.0.backward", Wide(1), Wide(0.5)),
                       R"("Module.a.Linear.parameters_grad.0": {"weight": [)" + Wide(0.5) + "]}"};
  };
  Write("g", run(2, 3, 0.5));
  Write("t", run(2 * (1 + 2e-7), 3 * (1 + 2.5e-5), 0.5));
  Differences d = Find();
  EXPECT_EQ(d.Answer().kind, Kind::kGrows);
  EXPECT_TRUE(d.Answer().coarse);
  Write("t", run(2 * (1 + 2e-7), 3 * (1 + 2.5e-5), 0.5 * (1 + 3e-5)));
  d = Find();
  EXPECT_EQ(d.Answer().kind, Kind::kGrows);
  EXPECT_FALSE(d.Answer().coarse);
}

/// The loss of a model that has learned nothing hides much: the same functions with other gradients are no other way.
TEST_F(FindingsTest, ALossThatAgreesExcusesNothingWhereTheGradientsDoNot) {
  const auto run = [](double angle, double grad) {
    return std::vector<std::string>{
        Call("Functional.embedding.0.forward", Ids("2, 20"), Wide(2)),
        Call("Tensor.__mul__.0.forward", Wide(5) + ", " + TensorOf("8", 1, angle), Wide(angle)),
        Call("Functional.linear.0.forward", Wide(2), Wide(3)),
        Call("Functional.cross_entropy.0.forward", Wide(3), TensorOf("", 4.5, 4.5)),
        Call("Tensor.__add__.0.forward", TensorOf("", 4.5, 4.5), TensorOf("", 4.6, 4.6)),
        Call("Functional.cross_entropy.0.backward", TensorOf("", 1, 1), Wide(0.1)),
        Call("Functional.linear.0.backward", Wide(0.1), Wide(grad)),
        Call("Tensor.lerp_.0.forward", Wide(0.1) + ", " + Wide(grad), Wide(grad / 10)),
        Call("Tensor.sqrt.0.forward", Wide(grad), Wide(grad))};
  };
  Write("g", run(2, 0.2));
  Write("t", run(2.1, 0.25));
  const Differences d = Find();
  EXPECT_EQ(d.Answer().kind, Kind::kInput);
  EXPECT_EQ(d.Answer().name, "Tensor.__mul__.0.forward");
  EXPECT_EQ(d.Answer().item, ".input.1");
}

/// Two forms of a mask: true where something counts, and numbers that are added to the scores.
TEST_F(FindingsTest, AMaskInAnotherFormIsNoArgument) {
  const std::string choice =
      R"({"type": "torch.Tensor", "dtype": "torch.bool", "shape": [4, 4], "Max": true, "Min": false, "Mean": null, "Norm": null})";
  const std::string added =
      R"({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [4, 4], "Max": 0, "Min": -3.4e38, "Mean": -1e37, "Norm": 1e39})";
  const auto run = [](const std::string& mask, double out, double bias, double masked = 2) {
    return std::vector{
        Call("Module.layer.Layer.forward.0", Wide(1) + ", " + mask, Wide(masked)),
        Call("Module.head.Linear.forward.0", Wide(2), Wide(out), "", R"("bias": )" + TensorOf("8", bias, 2 * bias))};
  };
  Write("g", run(added, 3, 0.5));
  Write("t", run(choice, 3, 0.5));
  EXPECT_EQ(Find().Answer().kind, Kind::kNone);
  // What differs behind it is told by itself.
  Write("t", run(choice, 3.5, 0.7));
  EXPECT_EQ(Find().Answer().kind, Kind::kParameter);
  // A mask that one run alone is given is an argument.
  Write("t", run("null", 3.5, 0.7, 2.5));
  EXPECT_EQ(Find().Answer().kind, Kind::kArgument);
}

/// An optimizer moves a bias without a gradient by rounding alone; beside the results it is nothing.
TEST_F(FindingsTest, ABiasThatRoundsAwayInTheResultsIsNoDifference) {
  const auto run = [](double bias, double out) {
    return std::vector{
        Call("Functional.linear.0.forward", Wide(2) + ", " + Wide(1) + ", " + TensorOf("8", bias, 2 * bias), Wide(out)),
        Call("Module.key.Linear.forward.0", Wide(2), Wide(out), "",
             R"("weight": )" + Wide(1) + R"(, "bias": )" + TensorOf("8", bias, 2 * bias))};
  };
  Write("g", run(1.7e-10, 3));
  Write("t", run(-3.1e-10, 3.0000001));
  EXPECT_EQ(Find().Answer().kind, Kind::kNone) << Find().Answer().name;
  Write("g", run(0.017, 3));
  Write("t", run(0.031, 3.02));
  EXPECT_NE(Find().Answer().kind, Kind::kNone);
}

TEST_F(FindingsTest, OfCallsWhoseArgumentHasNoEffectTheFirstIsTold) {
  const auto run = [](double momentum) {
    std::vector<std::string> ops;
    for (int i = 0; i < 3; ++i) {
      ops.push_back(
          Call(fmt::format("Functional.batch_norm.{}.forward", i), Wide(1 + i) + ", " + Number(momentum), Wide(2 + i)));
    }
    return ops;
  };
  Write("g", run(0.1));
  Write("t", run(0.01));
  const FirstDifference found = Find().Answer();
  EXPECT_EQ(found.kind, Kind::kArgument);
  EXPECT_EQ(found.name, "Functional.batch_norm.0.forward");
  EXPECT_EQ(found.more_calls, 2u);
}

}  // namespace
}  // namespace msprobe
