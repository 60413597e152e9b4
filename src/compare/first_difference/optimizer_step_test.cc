// Settings of a step, and the parameters that its ops belong to.
#include "compare/test_findings.h"

namespace msprobe {
namespace {

std::string Loop(double lr, double decay) {
  return fmt::format("{}, {}, {}, {}, {}, {}",
                     Call("Tensor.__iadd__.0.forward", TensorOf("", 0, 0), TensorOf("", 1, 1)),
                     Call("Tensor.mul_.0.forward", Wide(3) + ", " + Number(1 - lr * decay), Wide(2.9)),
                     Call("Tensor.lerp_.0.forward", Wide(0.1) + ", " + Wide(0.2) + ", " + Number(0.1), Wide(0.12)),
                     Call("Tensor.addcmul_.0.forward", Wide(0.1), Wide(0.3), R"("value": )" + Number(0.001)),
                     Call("Tensor.add_.0.forward", Wide(0.5) + ", " + Number(1e-8), Wide(0.5)),
                     Call("Tensor.addcdiv_.0.forward", Wide(2.9), Wide(2.8), R"("value": )" + Number(-lr / 0.1)));
}

TEST_F(FindingsTest, SettingsOfAFusedStepAreThoseOfALoop) {
  const std::string forward = Call("Functional.linear.0.forward", Wide(1), Wide(2));
  const std::string backward = Call("Functional.linear.0.backward", Wide(2), Wide(1));
  const auto fused = [](double lr) {
    return Call("Torch._fused_adamw_.0.forward", Wide(3), "null",
                fmt::format(R"("lr": {}, "beta1": {}, "beta2": {}, "weight_decay": {}, "eps": {})", Number(lr),
                            Number(0.9), Number(0.999), Number(0.01), Number(1e-8)));
  };
  Write("g", {forward, backward, Loop(0.01, 0.01)});
  Write("t", {forward, backward, fused(0.01)});
  EXPECT_EQ(Find().Answer().kind, Kind::kNone) << "another form of the same step";
  Write("t", {forward, backward, fused(0.02)});
  const Differences d = Find();
  EXPECT_EQ(d.Answer().kind, Kind::kArgument);
  EXPECT_EQ(d.Answer().name, "Torch._fused_adamw_.0.forward");
  EXPECT_EQ(d.Answer().item, ".lr");
  EXPECT_EQ(d.Answer().detail, "is 0.02 against 0.01");
}

/// Of APIs alone nothing says what is a weight: squares of gradients are added to a moment.
TEST_F(FindingsTest, AMomentDoesNotDecayAWeight) {
  const std::string forward = Call("Functional.linear.0.forward", Wide(1), Wide(2));
  const std::string backward = Call("Functional.linear.0.backward", Wide(2), Wide(1));
  const auto loop = [](bool coupled) {
    const std::string decay = coupled ? Call("Tensor.add.0.forward", Wide(0.2) + ", " + Wide(3), Wide(0.3))
                                      : Call("Tensor.mul_.5.forward", Wide(3) + ", " + Number(0.9999), Wide(2.9));
    const double grad = coupled ? 0.3 : 0.2;
    return fmt::format("{}, {}, {}, {}, {}, {}", decay,
                       Call("Tensor.lerp_.0.forward", Wide(0.1) + ", " + Wide(grad) + ", " + Number(0.1), Wide(grad)),
                       Call("Tensor.mul_.0.forward", Wide(0.4) + ", " + Number(0.999), Wide(0.39)),
                       Call("Tensor.addcmul_.0.forward", Wide(0.39) + ", " + Wide(grad), Wide(0.4 + grad),
                            R"("value": )" + Number(0.001)),
                       Call("Tensor.add_.0.forward", Wide(0.5) + ", " + Number(1e-8), Wide(0.5)),
                       Call("Tensor.addcdiv_.0.forward", Wide(2.9), Wide(2 + grad), R"("value": )" + Number(-0.1)));
  };
  Write("t", {forward, backward, loop(true)});
  Write("g", {forward, backward, loop(false)});
  for (const FirstDifference& other : Find().others) EXPECT_NE(other.detail.substr(0, 8), "is 0.001") << other.name;
}

TEST_F(FindingsTest, AnOpOfTheOptimizerNamesItsParameter) {
  const std::string forward =
      Call("Module.a.fc.Linear.forward.0", Wide(1), Wide(2), "", R"("weight": )" + Wide(3) + R"(, "bias": )" + Wide(7));
  const std::string backward = Call("Module.a.fc.Linear.backward.0", Wide(2), Wide(1));
  const auto step = [](double eps) {
    std::string out;
    int i = 0;
    for (const double parameter : {3.0, 7.0}) {
      out += fmt::format("{}{}, {}", out.empty() ? "" : ", ",
                         Call(fmt::format("Tensor.mul_.{}.forward", i), Wide(parameter) + ", " + Number(0.99), Wide(2)),
                         Call(fmt::format("Tensor.add_.{}.forward", i), Wide(0.5) + ", " + Number(i == 1 ? eps : 1e-8),
                              Wide(i == 1 ? 0.5 + eps : 0.5)));
      ++i;
    }
    return out;
  };
  Write("t", {forward, backward, step(1e-3)});
  Write("g", {forward, backward, step(1e-8)});
  const Differences d = Find();
  EXPECT_EQ(d.Answer().name, "Tensor.add_.1.forward");
  EXPECT_EQ(d.Answer().owner, "a.fc.bias");
}

/// What clips is no data: one run takes the norm of what the other's step takes unscaled.
TEST_F(FindingsTest, ClippingOfOneRunIsNamed) {
  const std::string forward = Call("Functional.linear.0.forward", Wide(1), Wide(2));
  const std::string backward = Call("Functional.linear.0.backward", Wide(2), Wide(1));
  const std::string norm = Call("Torch._foreach_norm.0.forward", Wide(0.6), TensorOf("", 0.6, 0.6)) + ", " +
                           Call("Torch.clamp.0.forward", TensorOf("", 0.5, 0.5), TensorOf("", 0.5, 0.5));
  const auto step = [](double grad) {
    return Call("Tensor.lerp_.0.forward", Wide(0.1) + ", " + Wide(grad) + ", " + Number(0.1), Wide(grad / 3));
  };
  Write("g", {forward, backward, step(0.6)});
  Write("t", {forward, backward, norm, step(0.3)});
  Differences d = Find();
  EXPECT_EQ(d.Answer().kind, Kind::kExtraOp);
  EXPECT_TRUE(d.Answer().clips);
  EXPECT_EQ(d.Answer().name, "Torch._foreach_norm.0.forward");
  EXPECT_TRUE(d.others.empty());
  Write("g", {forward, backward, norm, step(0.3)});
  Write("t", {forward, backward, step(0.6)});
  d = Find();
  EXPECT_EQ(d.Answer().kind, Kind::kMissingOp);
  EXPECT_TRUE(d.Answer().clips);
  // A norm of something else, as logs have it, explains nothing.
  Write("g", {forward, backward, step(0.6)});
  Write("t", {forward, backward, Call("Torch.norm.0.forward", TensorOf("3", 7, 8), TensorOf("", 8, 8)), step(0.3)});
  EXPECT_FALSE(Find().Answer().clips);
}

/// What the steps take in shows in the ops that change weights, without any module.
TEST_F(FindingsTest, OptimizersOfOtherParametersAreNamed) {
  const std::string forward = Call("Functional.linear.0.forward", Wide(1), Wide(2));
  const std::string backward = Call("Functional.linear.0.backward", Wide(2), Wide(1));
  const auto adam = [](const std::vector<std::string>& shapes) {
    std::vector<std::string> out;
    for (size_t i = 0; i < shapes.size(); ++i) {
      const std::string weight = TensorOf(shapes[i], 1, 2), kept = TensorOf(shapes[i], 0.1, 0.2);
      out.push_back(Call(fmt::format("Tensor.lerp_.{}.forward", i), kept + ", " + kept + ", " + Number(0.1), kept));
      out.push_back(Call(fmt::format("Tensor.addcdiv_.{}.forward", i), weight + ", " + kept + ", " + kept, weight,
                         R"("value": )" + Number(-0.01)));
    }
    return fmt::format("{}", fmt::join(out, ", "));
  };
  const std::string sgd =
      Call("Tensor.add_.0.forward", Wide(3) + ", " + Wide(1), Wide(2.9), R"("alpha": )" + Number(-0.1));
  const auto told = [&](const std::string& step) {
    Write("t", {forward, backward, step});
    const Differences found = Find();
    const FirstDifference& d = found.Answer();
    return d.of_step ? d.item + " " + d.difference.target + ", " + d.difference.golden : std::string("nothing");
  };
  const auto divides = [](const std::string& shape) {
    const std::string kept = TensorOf(shape, 0.1, 0.2);
    return Call("Tensor.addcdiv_.0.forward", TensorOf(shape, 1, 2) + ", " + kept + ", " + kept, TensorOf(shape, 1, 2),
                R"("value": )" + Number(-0.01));
  };
  Write("g", {forward, backward, divides("4, 8")});
  EXPECT_EQ(told(sgd), "nothing") << "more than Adam divides";
  Write("g", {forward, backward, adam({"4, 8", "8", "2, 2"})});
  EXPECT_EQ(told(adam({"4, 8", "8", "2, 2"})), "nothing");
  EXPECT_EQ(told(adam({"4, 8", "8"})), ".parameters 2, 3");
  EXPECT_EQ(told(sgd), ".algorithm SGD, Adam");
  const auto decay = [](int i) {
    const std::string shape = i == 0 ? "4, 8" : "8";
    return Call(fmt::format("Tensor.mul_.{}.forward", i), TensorOf(shape, 1.1, 2.1) + ", " + Number(0.99),
                TensorOf(shape, 1, 2)) +
           ", ";
  };
  Write("g", {forward, backward, decay(0) + adam({"4, 8", "8", "2, 2"})});
  EXPECT_EQ(told(decay(0) + decay(1) + adam({"4, 8", "8", "2, 2"})), ".decays 2, 1");
  EXPECT_TRUE(Find().others.empty()) << "the products that are more are what it is made of";
  Write("g", {forward, backward, adam({"4, 8", "8", "2, 2"})});
  EXPECT_EQ(
      told(Call("Tensor.mul_.0.forward", Wide(3) + ", " + Number(0.99), Wide(3)) + ", " + adam({"4, 8", "2, 2", "8"})),
      ".order [2, 2], [8]");
}

}  // namespace
}  // namespace msprobe
