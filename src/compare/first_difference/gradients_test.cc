// Gradients that are reduced, added up and taken in by an optimizer.
#include "compare/test_findings.h"

namespace msprobe {
namespace {

std::string Grad(const std::string& module, int number, const std::string& weight) {
  return fmt::format(R"("Module.{}.Linear.parameters_grad.{}": {{"weight": [{}]}})", module, number, weight);
}

std::string Reduce(int number, const std::string& from, const std::string& to) {
  return Call(fmt::format("Distributed.all_reduce.{}.forward", number), from, to);
}

std::string Halve(int number, const std::string& from, const std::string& to) {
  return Call(fmt::format("Tensor.div_.{}.forward", number), from + R"(, {"type": "int", "value": 2})", to);
}

const std::string kParentsOfA = R"("Module.a.Linear.forward.0": null)";

class FlatReductionTest : public FindingsTest {
 protected:
  /// Two gradients, one by one; and both in one flat tensor.
  void WriteRuns(double taken) {
    const std::string forward = Call("Module.a.Linear.forward.0", Wide(1), Wide(2));
    const std::string grads =
        Grad("a", 0, msprobe::TensorOf("4, 6", 0.4, 1)) + ", " + Grad("b", 0, msprobe::TensorOf("12", 0.2, 0.5));
    const auto step = [](double first) {
      return Call("Tensor.addcdiv_.0.forward",
                  msprobe::TensorOf("4, 6", 1, 3) + ", " + msprobe::TensorOf("4, 6", 0.3, first),
                  msprobe::TensorOf("4, 6", 1, 3 - first)) +
             ", " +
             Call("Tensor.addcdiv_.1.forward", msprobe::TensorOf("12", 1, 2) + ", " + msprobe::TensorOf("12", 0.1, 0.3),
                  msprobe::TensorOf("12", 1, 1.7));
    };
    Write("g",
          {forward, grads, Reduce(0, msprobe::TensorOf("4, 6", 0.4, 1), msprobe::TensorOf("4, 6", 0.6, 1.5)),
           Halve(0, msprobe::TensorOf("4, 6", 0.6, 1.5), msprobe::TensorOf("4, 6", 0.3, 0.75)),
           Reduce(1, msprobe::TensorOf("12", 0.2, 0.5), msprobe::TensorOf("12", 0.2, 0.6)),
           Halve(1, msprobe::TensorOf("12", 0.2, 0.6), msprobe::TensorOf("12", 0.1, 0.3)), step(0.75)},
          kParentsOfA);
    Write("t",
          {forward, grads, Reduce(0, msprobe::TensorOf("36", 0.4, 1.1), msprobe::TensorOf("36", 0.6, 1.6)),
           Halve(0, msprobe::TensorOf("36", 0.6, 1.6), msprobe::TensorOf("36", 0.3, 0.8)), step(taken)},
          kParentsOfA);
  }
};

TEST_F(FlatReductionTest, OneCallForSeveralIsAnotherWay) {
  WriteRuns(0.75);
  const Differences d = Find();
  EXPECT_EQ(d.Answer().kind, Kind::kNone) << d.Answer().name;
  EXPECT_EQ(d.divided, 2u);
}

TEST_F(FlatReductionTest, WhatIsTakenInAfterwardsIsCompared) {
  WriteRuns(1.5);
  EXPECT_EQ(Find().Answer().name, "Tensor.addcdiv_.0.forward");
}

/// Sums over ranks after each micro batch: the gradients of the first are added to what they already were summed to.
TEST_F(FindingsTest, AReductionBetweenTwoBackwardPassesExplainsTheSecondGradient) {
  const auto run = [](bool early, double second) {
    std::vector<std::string> ops{Call("Module.a.Linear.forward.0", Wide(1), Wide(2)), Grad("a", 0, Wide(0.5))};
    int calls = 0;
    if (early) ops.push_back(Reduce(calls++, Wide(0.5), Wide(0.9)));
    ops.push_back(Call("Module.a.Linear.forward.1", Wide(1.5), Wide(2.5)));
    ops.push_back(Grad("a", 1, Wide(second)));
    ops.push_back(Reduce(calls, Wide(second), Wide(2 * second)));
    return ops;
  };
  Write("t", run(true, 1.4), kParentsOfA);
  Write("g", run(false, 1), kParentsOfA);
  const Differences d = Find();
  EXPECT_EQ(d.Answer().kind, Kind::kExtraOp);
  EXPECT_EQ(d.Answer().name, "Distributed.all_reduce.0.forward");
}

class DecayTest : public FindingsTest {
 protected:
  static std::vector<std::string> Run(bool decays_scale, double weight) {
    std::vector<std::string> ops{
        Call("Module.a.Linear.forward.0", Wide(1), Wide(2), "", R"("weight": )" + Wide(weight)),
        Call("Module.n.Norm.forward.0", Wide(2), Wide(2), "", R"("weight": )" + msprobe::TensorOf("8", 1, 2.8)),
        Call("Module.n.Norm.backward.0", Wide(2), Wide(1))};
    int products = 0;
    const auto update = [&](int i, bool decays, const std::string& before, const std::string& decayed) {
      if (decays)
        ops.push_back(Call(fmt::format("Tensor.mul_.{}.forward", products++), before + ", " + Number(0.999), decayed));
      ops.push_back(Call(fmt::format("Tensor.addcdiv_.{}.forward", i), decays ? decayed : before,
                         msprobe::TensorOf("2", 1, i + 1)));
    };
    update(0, true, Wide(weight), Wide(weight * 0.999));
    update(1, decays_scale, msprobe::TensorOf("8", 1, 2.8), msprobe::TensorOf("8", 0.999, 2.79));
    return ops;
  }
};

TEST_F(DecayTest, AGroupThatOnlyOneRunDecaysIsToldByItsParameters) {
  Write("t", Run(true, 3));
  Write("g", Run(false, 3));
  const Differences d = Find();
  EXPECT_EQ(d.Answer().kind, Kind::kArgument);
  EXPECT_EQ(d.Answer().item, ".lr * weight_decay");
  EXPECT_EQ(d.Answer().owner, "n.weight");
  EXPECT_EQ(d.Answer().difference.target, "0.001");
  EXPECT_EQ(d.Answer().difference.golden, "0");
}

TEST_F(DecayTest, ItIsToldBesideAnEarlierDifference) {
  Write("t", Run(true, 3.1));
  Write("g", Run(false, 3));
  const Differences d = Find();
  EXPECT_EQ(d.Answer().parameter, "weight");
  const bool told = std::ranges::any_of(d.others, [](const FirstDifference& o) { return o.owner == "n.weight"; });
  EXPECT_TRUE(told);
}

TEST_F(DecayTest, OneThatBothDecayIsNot) {
  Write("t", Run(true, 3));
  Write("g", Run(true, 3));
  EXPECT_EQ(Find().Answer().kind, Kind::kNone);
}

}  // namespace
}  // namespace msprobe
