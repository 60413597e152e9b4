// What comes in: which argument it is, the same values in other places, weights known without a module, and what
// requires gradients.
#include <set>

#include "compare/test_findings.h"

namespace msprobe {
namespace {

/// With or without gradients, and a mean of its own.
std::string Tensor(double norm, bool trains, double mean = 0.1, const std::string& shape = "4, 8") {
  return fmt::format(
      R"({{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [{}], "Max": {}, "Min": {}, "Mean": {:.9},
          "Norm": {}, "requires_grad": {}}})",
      shape, norm / 3, -norm / 4, mean, norm, trains ? "true" : "false");
}

std::string Shaped(const std::string& shape, double norm) { return Tensor(norm, false, 0.1, shape); }

TEST_F(FindingsTest, AnArgumentHasTheNameThatItsFunctionHas) {
  const auto norm = [](double eps) {
    return Call("Functional.group_norm.0.forward", Wide(1) + ", " + Number(4) + ", null, null, " + Number(eps),
                Wide(1 + eps));
  };
  Write("t", {norm(0.1)});
  Write("g", {norm(0.00001)});
  const Differences d = Find();
  EXPECT_EQ(d.Answer().kind, Kind::kArgument);
  EXPECT_EQ(d.Answer().item, ".input.4");
  EXPECT_EQ(d.Answer().argument, "eps");
}

TEST_F(FindingsTest, WhatOneGroupIsSteppedByIsItsRate) {
  const auto run = [](double second) {
    return std::vector{
        Call("Functional.linear.0.forward", Wide(1), Wide(2)), Call("Functional.linear.0.backward", Wide(2), Wide(1)),
        Call("Tensor.add_.0.forward", Wide(3) + ", " + Wide(1), Wide(2.9), R"("alpha": )" + Number(-0.01)),
        Call("Tensor.add_.1.forward", Wide(5) + ", " + Wide(1), Wide(4.9 - second), R"("alpha": )" + Number(-second))};
  };
  Write("t", run(0.1));
  Write("g", run(0.01));
  const Differences d = Find();
  EXPECT_EQ(d.Answer().name, "Tensor.add_.1.forward");
  EXPECT_EQ(d.Answer().item, ".lr");
  EXPECT_EQ(d.Answer().detail, "is 0.1 against 0.01");
}

TEST_F(FindingsTest, TheSameValuesInOtherPlacesCameIn) {
  const auto run = [](double mean, double out) {
    return std::vector{Call("Functional.relu.0.forward", Wide(4), Wide(3)),
                       Call("Functional.conv2d.0.forward", Tensor(2, false, mean) + ", " + Wide(5), Wide(out))};
  };
  Write("t", run(0.1, 7));
  Write("g", run(0.10000002, 7.5));
  Differences d = Find();
  EXPECT_EQ(d.Answer().kind, Kind::kInput);
  EXPECT_TRUE(d.Answer().reordered);
  EXPECT_EQ(d.Answer().item, ".input.0");
  // Equal statistics tell nothing, and the op is where to look.
  Write("g", run(0.1, 7.5));
  d = Find();
  EXPECT_EQ(d.Answer().kind, Kind::kOp);
  EXPECT_FALSE(d.Answer().reordered);
}

/// An index that rounding turned has no tolerance, and hides nothing that comes behind it.
TEST_F(FindingsTest, WhatComesInBehindATurnedIndexIsTold) {
  const auto run = [](double scores, double index, double weight) {
    const std::string chosen = fmt::format(
        R"({{"type": "torch.Tensor", "dtype": "torch.int64", "shape": [4, 8], "Max": 7, "Min": 0, "Mean": {}, "Norm": 9}})",
        index);
    return std::vector{Call("Functional.linear.0.forward", Wide(1), Wide(scores)),
                       Call("Torch.topk.0.forward", Wide(scores), Wide(scores) + ", " + chosen),
                       Call("Tensor.t.0.forward", Wide(weight), Wide(weight))};
  };
  Write("t", run(2.0000002, 3, 6));
  Write("g", run(2, 3.5, 5));
  const Differences d = Find();
  EXPECT_EQ(d.Answer().name, "Tensor.t.0.forward");
  EXPECT_EQ(d.Answer().kind, Kind::kInput);
}

TEST_F(FindingsTest, InputsOfOneCallThatAreExchangedAreToldAsThat) {
  const auto run = [](double first, double second, double out) {
    return std::vector{
        Call("Module.layer.Gather.forward.0", Wide(1) + ", " + Wide(first) + ", " + Wide(second), Wide(out))};
  };
  Write("t", run(2, 3, 4));
  Write("g", run(3, 2, 5));
  Differences d = Find();
  EXPECT_EQ(d.Answer().kind, Kind::kInput);
  EXPECT_EQ((std::set<std::string>{d.Answer().item, d.Answer().exchanged}),
            (std::set<std::string>{".input.1", ".input.2"}));
  Write("g", run(3, 2.5, 5));
  d = Find();
  EXPECT_EQ(d.Answer().exchanged, "");
}

/// Attention is given heads where the op in front of it gave rows.
TEST_F(FindingsTest, AnOpOfOneRunIsKnownByWhatItGaveInAnotherShape) {
  const std::string a = Call("Functional.linear.0.forward", Wide(1), Wide(2));
  const std::string add = Call("Tensor.__add__.0.forward", Wide(2) + ", " + Wide(0.3), Wide(2.2));
  const auto attend = [](double v) {
    return Call("Functional.softmax.0.forward", Shaped("2, 2, 8", v), Shaped("2, 2, 8", v / 2));
  };
  const std::string filler = Call("Functional.relu.0.forward", Wide(9), Wide(8)) + ", " +
                             Call("Functional.relu.1.forward", Wide(8), Wide(8)) + ", " +
                             Call("Functional.relu.2.forward", Wide(8), Wide(8)) + ", " +
                             Call("Functional.relu.3.forward", Wide(8), Wide(8));
  Write("t", {a, filler, attend(2)});
  Write("g", {a, add, filler, attend(2.2)});
  const Differences d = Find();
  EXPECT_EQ(d.Answer().kind, Kind::kMissingOp);
  EXPECT_EQ(d.Answer().name, "Tensor.__add__.0.forward");
}

/// What an index or another function that is not recorded makes of it is not known.
TEST_F(FindingsTest, AnOpOfOneRunThatOnlyUnseenCodeTakesMadeWhatComesIn) {
  const std::string a = Call("Functional.softmax.0.forward", Wide(1), Wide(2));
  const std::string norm = Call("Tensor.__truediv__.0.forward", Wide(2) + ", " + Wide(0.3), Wide(2.2));
  const auto rest = [](double taken, double made) {
    std::string out;
    for (int i = 0; i < 4; ++i)
      out += Call(fmt::format("Functional.linear.{}.forward", i), Wide(i == 0 ? taken : 9), Wide(8)) + ", ";
    return out + Call("Tensor.__mul__.0.forward", Wide(8) + ", " + Shaped("4, 1", made), Wide(made + 1));
  };
  Write("t", {a, rest(9, 0.7)});
  Write("g", {a, norm, rest(9, 0.9)});
  Differences d = Find();
  EXPECT_EQ(d.Answer().kind, Kind::kMissingOp);
  EXPECT_EQ(d.Answer().name, "Tensor.__truediv__.0.forward");
  // Where a recorded op takes it, which agrees, it made nothing else.
  Write("t", {a, rest(2.2, 0.7)});
  Write("g", {a, norm, rest(2.2, 0.9)});
  d = Find();
  EXPECT_EQ(d.Answer().kind, Kind::kInput);
}

TEST_F(FindingsTest, WhatTheStepChangesIsAParameter) {
  const auto run = [](double scale, bool stepped) {
    std::vector<std::string> ops{
        Call("Tensor.__mul__.0.forward", Tensor(1, true) + ", " + Tensor(scale, true), Tensor(scale + 1, true)),
        Call("Tensor.__mul__.0.backward", Wide(2), Wide(1))};
    if (stepped)
      ops.push_back(Call("Tensor.add_.0.forward", Tensor(scale, true) + ", " + Wide(1), Tensor(scale - 0.1, true),
                         R"("alpha": )" + Number(-0.01)));
    return ops;
  };
  Write("t", run(2, true));
  Write("g", run(3, true));
  EXPECT_EQ(Find().Answer().kind, Kind::kParameter);
  Write("t", run(2, false));
  Write("g", run(3, false));
  EXPECT_EQ(Find().Answer().kind, Kind::kInput);
}

/// The gradient goes another way; nothing of it is data.
TEST_F(FindingsTest, AGradientThatComesInIsToldAsThat) {
  const auto run = [](double gradient, double step) {
    return std::vector{
        Call("Functional.linear.0.forward", Wide(1), Wide(2)),
        Call("Functional.linear.0.backward", Wide(gradient), Wide(gradient / 2)),
        Call("Tensor.lerp_.0.forward", Wide(0.5) + ", " + Wide(step) + ", " + Number(0.1), Wide(step / 10))};
  };
  Write("t", run(2, 1));
  Write("g", run(3, 1.5));
  Differences d = Find();
  EXPECT_EQ(d.Answer().name, "Functional.linear.0.backward");
  EXPECT_TRUE(d.Answer().gradient);
  Write("g", run(2, 1.5));
  d = Find();
  EXPECT_EQ(d.Answer().item, ".input.1");
  EXPECT_TRUE(d.Answer().gradient);
  EXPECT_FALSE(d.Answer().state);
}

TEST_F(FindingsTest, WhoseResultsCameInIsNamedOnBothSides) {
  const auto run = [](double taken) {
    return std::vector{Call("Functional.batch_norm.0.forward", Wide(9), Wide(2)),
                       Call("Tensor.__add__.0.forward", Wide(2) + ", " + Wide(1), Wide(2.5)),
                       Call("Functional.relu.0.forward", Wide(taken), Wide(taken - 1))};
  };
  Write("t", run(2));
  Write("g", run(2.5));
  Differences d = Find();
  EXPECT_EQ(d.Answer().kind, Kind::kInput);
  EXPECT_EQ(d.Answer().made_by, "Functional.batch_norm.0.forward");
  EXPECT_EQ(d.Answer().golden_made_by, "Tensor.__add__.0.forward");
  Write("t", run(1.7));
  d = Find();
  EXPECT_EQ(d.Answer().made_by, "");
}

/// They change no result in training; where the dump has no names of buffers, their place tells.
TEST_F(FindingsTest, RunningStatisticsAreKnownByTheirPlace) {
  const auto run = [](double mean) {
    return std::vector{
        Call("Functional.batch_norm.0.forward", Wide(2) + ", " + Shaped("8", mean) + ", " + Shaped("8", 1), Wide(1)),
        Call("Functional.relu.0.forward", Wide(1), Wide(1))};
  };
  Write("t", run(2));
  Write("g", run(1));
  const Differences d = Find();
  EXPECT_EQ(d.Answer().kind, Kind::kParameter);
  EXPECT_EQ(d.Answer().parameter, "running_mean");
  EXPECT_TRUE(d.Answer().buffer);
}

/// A mean that is a sum divided later: the gradients agree.
TEST_F(FindingsTest, WhatFollowsMakesAnotherCallGood) {
  const auto run = [](bool sums, double gradient) {
    const std::string reduction = sums ? "sum" : "mean";
    std::vector<std::string> ops;
    for (int i = 0; i < 5; ++i) ops.push_back(Call(fmt::format("Functional.linear.{}.forward", i), Wide(1), Wide(2)));
    ops.push_back(Call("Functional.cross_entropy.0.forward", Wide(2), Shaped("2", sums ? 8 : 2),
                       R"("reduction": {"type": "str", "value": ")" + reduction + "\"}"));
    if (sums) ops.push_back(Call("Tensor.__truediv__.0.forward", Shaped("2", 8) + ", " + Number(4), Shaped("2", 2)));
    ops.push_back(Call("Functional.cross_entropy.0.backward", Shaped("2", sums ? 0.2 : 1), Wide(0.5)));
    for (int i = 5; i-- > 0;)
      ops.push_back(Call(fmt::format("Functional.linear.{}.backward", i), Wide(0.5), Wide(i == 2 ? gradient : 0.5)));
    return ops;
  };
  Write("t", run(true, 0.5));
  Write("g", run(false, 0.5));
  EXPECT_EQ(Find().Answer().kind, Kind::kNone);
  Write("t", run(true, 0.9));
  EXPECT_EQ(Find().Answer().kind, Kind::kArgument);
}

TEST_F(FindingsTest, AStepThatOneRunLeavesOutIsOne) {
  const auto run = [](bool steps) {
    std::vector<std::string> ops{Call("Functional.linear.0.forward", Wide(1), Wide(2)),
                                 Call("Functional.linear.0.backward", Wide(2), Wide(1))};
    for (int i = 0; i < 2 && steps; ++i)
      ops.push_back(Call(fmt::format("Tensor.add_.{}.forward", i), Wide(5) + ", " + Wide(1), Wide(4.9),
                         R"("alpha": )" + Number(-0.01)));
    return ops;
  };
  Write("t", run(false));
  Write("g", run(true));
  Differences d = Find();
  EXPECT_EQ(d.Answer().kind, Kind::kMissingOp);
  EXPECT_TRUE(d.Answer().of_step);
  EXPECT_TRUE(d.others.empty());
  Write("t", run(true));
  Write("g", run(false));
  d = Find();
  EXPECT_EQ(d.Answer().kind, Kind::kExtraOp);
  EXPECT_TRUE(d.Answer().of_step);
}

TEST_F(FindingsTest, WhereOneRunCutsTheGraphIsTheOrigin) {
  const auto run = [](bool whole) {
    std::vector<std::string> ops{
        Call("Functional.linear.0.forward", Tensor(1, false) + ", " + Tensor(3, true), Tensor(2, true)),
        Call("Functional.linear.1.forward", Tensor(2, whole) + ", " + Tensor(5, true), Tensor(4, true)),
        Call("Functional.linear.1.backward", Wide(1), Wide(2))};
    if (whole) ops.push_back(Call("Functional.linear.0.backward", Wide(2), Wide(1)));
    ops.push_back(Call("Tensor.add_.0.forward", Wide(5) + ", " + Wide(1), Wide(4.9), R"("alpha": )" + Number(-0.01)));
    if (whole)
      ops.push_back(Call("Tensor.add_.1.forward", Wide(3) + ", " + Wide(1), Wide(2.9), R"("alpha": )" + Number(-0.01)));
    return ops;
  };
  Write("t", run(false));
  Write("g", run(true));
  Differences d = Find();
  EXPECT_EQ(d.Answer().kind, Kind::kArgument);
  EXPECT_EQ(d.Answer().name, "Functional.linear.1.forward");
  EXPECT_EQ(d.Answer().item, ".input.0");
  EXPECT_EQ(d.Answer().detail, "requires_grad is False against True");
  EXPECT_TRUE(d.others.empty()) << "the step lacks what has no gradient";
  // Where the forward passes are made of other ops, calls are paired that need not be given the same.
  const std::string own = Call("Functional.softmax.0.forward", Tensor(1, false), Tensor(2, false));
  std::vector<std::string> other = run(false);
  other.insert(other.begin(), own);
  Write("t", other);
  d = Find();
  EXPECT_NE(d.Answer().difference.what, "requires_grad");
  Write("t", run(true));
  d = Find();
  EXPECT_EQ(d.Answer().kind, Kind::kNone);
}

/// As an average of the weights that is written back; another form of the step has ops in place of others.
TEST_F(FindingsTest, OpsThatChangeSomethingBehindAWholeStepAreTold) {
  const auto run = [](bool averages) {
    std::vector<std::string> ops{
        Call("Functional.linear.0.forward", Wide(1), Wide(2)), Call("Functional.linear.0.backward", Wide(2), Wide(1)),
        Call("Tensor.add_.0.forward", Wide(5) + ", " + Wide(1), Wide(4.9), R"("alpha": )" + Number(-0.01))};
    if (averages) {
      ops.push_back(Call("Tensor.mul_.0.forward", Wide(5) + ", " + Number(0.99), Wide(4.95)));
      ops.push_back(
          Call("Tensor.add_.1.forward", Wide(4.95) + ", " + Wide(4.9), Wide(4.999), R"("alpha": )" + Number(0.01)));
    }
    return ops;
  };
  Write("t", run(true));
  Write("g", run(false));
  const Differences d = Find();
  EXPECT_EQ(d.Answer().kind, Kind::kExtraOp);
  EXPECT_EQ(d.Answer().name, "Tensor.mul_.0.forward");
}

TEST_F(FindingsTest, AStatisticThatReadsAsEqualIsNotShown) {
  const auto run = [](double mean, double out) {
    return std::vector{Call("Functional.relu.0.forward", Tensor(2, false, mean), Wide(out))};
  };
  Write("t", run(0.1, 3));
  Write("g", run(0.3, 3));
  const Differences d = Find();
  EXPECT_EQ(d.Answer().difference.what, "Mean");
}

}  // namespace
}  // namespace msprobe
