#include "compare/first_difference/first_difference.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "compare/test_findings.h"

namespace msprobe {
namespace {

std::string TensorWith(double v, const std::string& dtype = "torch.float32") {
  const std::string s = fmt::format("{}", v);
  return R"({"type": "torch.Tensor", "dtype": ")" + dtype + R"(", "shape": [2], "Max": )" + s + R"(, "Min": )" + s +
         R"(, "Mean": )" + s + R"(, "Norm": )" + s + "}";
}

/// An op with one input and one output.
std::string OpOfValues(const std::string& name, double in, double out) {
  const bool backward = name.find("backward") != std::string::npos;
  return "\"" + name + R"(": {")" + (backward ? "input" : "input_args") + R"(": [)" + TensorWith(in) +
         R"(], "output": [)" + TensorWith(out) + "]}";
}

class FirstDifferenceTest : public DifferencesTest {
 protected:
  void Write(const std::string& side, const std::vector<std::string>& ops) {
    std::string data;
    for (const std::string& op : ops) data += (data.empty() ? "" : ", ") + op;
    dir_.Write(side + "/dump.json",
               R"({"task": "statistics", "level": "mix", "framework": "pytorch", "data": {)" + data + "}}");
  }
};

TEST_F(FirstDifferenceTest, NoneWhenAllAgree) {
  Write("t", {OpOfValues("F.a.0.forward", 1, 2)});
  Write("g", {OpOfValues("F.a.0.forward", 1, 2)});
  const Differences d = Find();
  EXPECT_EQ(d.first.kind, Kind::kNone);
  EXPECT_EQ(d.source.kind, Kind::kNone);
}

TEST_F(FirstDifferenceTest, TheOpWhoseOutputDiffersWithItsFrame) {
  Write("t",
        {OpOfValues("F.a.0.forward", 1, 2), OpOfValues("F.b.0.forward", 2, 3.3), OpOfValues("F.c.0.forward", 3.3, 4)});
  Write("g",
        {OpOfValues("F.a.0.forward", 1, 2), OpOfValues("F.b.0.forward", 2, 3.0), OpOfValues("F.c.0.forward", 3.0, 5)});
  dir_.Write("t/stack.json", R"json({"0": [["F.b.0.forward"], ["File /x/torch/nn/f.py, line 3, in f, \n g()",
                                "File /u/model.py, line 12, in step, \n f()"]]})json");
  const Differences d = Find();
  EXPECT_EQ(d.first.kind, Kind::kOp);
  EXPECT_EQ(d.first.name, "F.b.0.forward");
  EXPECT_EQ(d.first.item, ".output.0");
  EXPECT_EQ(d.first.detail, "Norm differs by 10 %");
  EXPECT_EQ(d.first.inputs, "are equal");
  EXPECT_EQ(d.first.frame, "model.py:12");
  EXPECT_EQ(d.first.function, "step");
  EXPECT_EQ(d.source.kind, Kind::kNone);
}

TEST_F(FirstDifferenceTest, RoundOffIsNoDifference) {
  Write("t", {OpOfValues("F.a.0.forward", 1, 2.0000004), OpOfValues("F.b.0.forward", 2.0000004, 5)});
  Write("g", {OpOfValues("F.a.0.forward", 1, 2), OpOfValues("F.b.0.forward", 2, 3)});
  const Differences d = Find();
  EXPECT_EQ(d.first.name, "F.b.0.forward");
  EXPECT_EQ(d.first.inputs, "agree to 2e-07");
}

TEST_F(FirstDifferenceTest, OpsThatRoundNothingMayNotDifferAtAll) {
  for (const std::string name : {"Torch.trunc.0.forward", "Tensor.negative.0.forward", "Torch.copysign.0.forward",
                                 "Tensor.index_fill_.0.forward", "Tensor.gather_elements.0.forward"}) {
    Write("t", {OpOfValues(name, 1, 2.0000004), OpOfValues("F.b.0.forward", 2.0000004, 5)});
    Write("g", {OpOfValues(name, 1, 2), OpOfValues("F.b.0.forward", 2, 3)});
    EXPECT_EQ(Find().first.name, name);
  }
}

TEST_F(FirstDifferenceTest, ADifferentParameterIsToldApart) {
  Write("t", {OpOfValues("F.a.0.forward", 1.5, 2.5)});
  Write("g", {OpOfValues("F.a.0.forward", 1, 2)});
  const Differences d = Find();
  EXPECT_EQ(d.first.kind, Kind::kNone);
  EXPECT_EQ(d.source.kind, Kind::kInput);
  EXPECT_EQ(d.source.item, ".input.0");
}

TEST_F(FirstDifferenceTest, ModulesAroundADifferencePassItOn) {
  // The child's parameter differs; its parent's inputs agree and its output differs, but it is not to blame.
  const std::string child = "Module.mlp.down.Linear.forward.0", parent = "Module.mlp.MLP.forward.0";
  Write("t", {OpOfValues(child, 1.5, 2.5), OpOfValues(parent, 1, 2.5), OpOfValues("Module.norm.Norm.forward.0", 1, 7)});
  Write("g", {OpOfValues(child, 1, 2), OpOfValues(parent, 1, 2), OpOfValues("Module.norm.Norm.forward.0", 1, 9)});
  const Differences d = Find();
  EXPECT_EQ(d.source.name, child);
  EXPECT_EQ(d.first.name, "Module.norm.Norm.forward.0");
}

TEST_F(FirstDifferenceTest, TheHierarchyTellsContainers) {
  Write("t", {OpOfValues("F.linear.0.forward", 1, 2.5), OpOfValues("Module.a.A.forward.0", 1, 2.5)});
  Write("g", {OpOfValues("F.linear.0.forward", 1, 2), OpOfValues("Module.a.A.forward.0", 1, 2)});
  dir_.Write("t/construct.json", R"({"F.linear.0.forward": "Module.a.A.forward.0", "Module.a.A.forward.0": null})");
  EXPECT_EQ(Find().first.name, "F.linear.0.forward");
}

TEST_F(FirstDifferenceTest, BackwardOfADifferingForwardIsNotToBlame) {
  Write("t", {OpOfValues("F.a.0.forward", 1, 2), OpOfValues("F.b.0.forward", 2, 3.5),
              OpOfValues("F.b.0.backward", 1, 5), OpOfValues("F.a.0.backward", 1, 6)});
  Write("g", {OpOfValues("F.a.0.forward", 1, 2), OpOfValues("F.b.0.forward", 3, 3.0),
              OpOfValues("F.b.0.backward", 1, 4), OpOfValues("F.a.0.backward", 1, 4)});
  const Differences d = Find();
  EXPECT_EQ(d.source.name, "F.b.0.forward");
  EXPECT_EQ(d.first.name, "F.a.0.backward") << "its forward agrees, its own gradient is wrong";
}

TEST_F(FirstDifferenceTest, CommunicationPointsToOtherRanks) {
  Write("t", {OpOfValues("Distributed.all_reduce.0.forward", 1, 3)});
  Write("g", {OpOfValues("Distributed.all_reduce.0.forward", 1, 2)});
  EXPECT_EQ(Find().first.kind, Kind::kCommunication);
}

TEST_F(FirstDifferenceTest, AnotherDTypeIsToldThoughValuesAgree) {
  const auto op = [](const std::string& name, const std::string& dtype) {
    return "\"" + name + R"(": {"input_args": [)" + TensorWith(1) + "], \"output\": [" + TensorWith(2, dtype) + "]}";
  };
  Write("t", {OpOfValues("F.a.0.forward", 1, 2), op("F.b.0.forward", "torch.bfloat16"),
              op("F.c.0.forward", "torch.bfloat16")});
  Write("g", {OpOfValues("F.a.0.forward", 1, 2), op("F.b.0.forward", "torch.float32"),
              op("F.c.0.forward", "torch.float32")});
  const Differences d = Find();
  EXPECT_EQ(d.first.kind, Kind::kNone);
  EXPECT_EQ(d.dtype.kind, Kind::kDType);
  EXPECT_EQ(d.dtype_ops, 2u);
  EXPECT_EQ(d.dtype.name, "F.b.0.forward");
  EXPECT_EQ(d.dtype.item, ".output.0");
  EXPECT_EQ(d.dtype.detail, "is of torch.bfloat16 against torch.float32");
}

TEST_F(FirstDifferenceTest, UnwrittenMemoryIsNoDifference) {
  Write("t", {OpOfValues("Torch.empty.0.forward", 1, 3)});
  Write("g", {OpOfValues("Torch.empty.0.forward", 1, 2)});
  EXPECT_EQ(Find().first.kind, Kind::kNone);
}

/// An op with arguments behind its input, and any number of output elements.
std::string OpWith(const std::string& name, double in, const std::string& arguments, double out,
                   const std::string& dtype = "torch.float32") {
  return "\"" + name + R"(": {"input_args": [)" + TensorWith(in, dtype) + arguments + R"(], "output": [)" +
         TensorWith(out, dtype) + "]}";
}

std::string Float(double v) { return R"(, {"type": "float", "value": )" + fmt::format("{}", v) + "}"; }

TEST_F(FirstDifferenceTest, LessThanTheToleranceStandsOutWhereAllBeforeIsBitEqual) {
  // 5e-6 is round-off between runs that round everywhere, but not what one sum of two terms can give.
  Write("t", {OpOfValues("Torch.add.0.forward", 1, 2), OpOfValues("Torch.mul.0.forward", 2, 3.000015)});
  Write("g", {OpOfValues("Torch.add.0.forward", 1, 2), OpOfValues("Torch.mul.0.forward", 2, 3)});
  const Differences d = Find();
  EXPECT_EQ(d.first.name, "Torch.mul.0.forward");
  EXPECT_EQ(d.first.verdict, RulerVerdict::kBug);
  EXPECT_GT(d.first.units, 1);
  EXPECT_EQ(d.ruler.bit_equal, 1u);
  EXPECT_EQ(d.ruler.bug, 1u);
}

TEST_F(FirstDifferenceTest, OneUnitInTheLastPlaceIsRoundOff) {
  Write("t", {OpOfValues("Torch.add.0.forward", 1, 2.0000002), OpOfValues("Torch.mul.0.forward", 2.0000002, 3)});
  Write("g", {OpOfValues("Torch.add.0.forward", 1, 2), OpOfValues("Torch.mul.0.forward", 2, 3)});
  const Differences d = Find();
  EXPECT_EQ(d.Answer().kind, Kind::kNone);
  EXPECT_EQ(d.ruler.round_off, 2u);
}

TEST_F(FirstDifferenceTest, AnotherArgumentIsTheAnswerAndItsValueIsTold) {
  Write("t", {OpWith("Functional.layer_norm.0.forward", 1, Float(1e-3), 2), OpOfValues("F.b.0.forward", 2, 3)});
  Write("g", {OpWith("Functional.layer_norm.0.forward", 1, Float(1e-5), 2.5), OpOfValues("F.b.0.forward", 2.5, 4)});
  const Differences d = Find();
  EXPECT_EQ(d.first.kind, Kind::kArgument);
  EXPECT_EQ(d.first.name, "Functional.layer_norm.0.forward");
  EXPECT_EQ(d.first.item, ".input.1");
  EXPECT_EQ(d.first.detail, "is 0.001 against 1e-05");
  EXPECT_EQ(d.infected_ops, 1u);
}

TEST_F(FirstDifferenceTest, AnArgumentWithoutEffectIsToldOnlyWhenNothingElseDiffers) {
  Write("t", {OpWith("F.a.0.forward", 1, Float(3), 2), OpOfValues("F.b.0.forward", 2, 3)});
  Write("g", {OpWith("F.a.0.forward", 1, Float(4), 2), OpOfValues("F.b.0.forward", 2, 5)});
  EXPECT_EQ(Find().first.name, "F.b.0.forward");
  Write("g", {OpWith("F.a.0.forward", 1, Float(4), 2), OpOfValues("F.b.0.forward", 2, 3)});
  EXPECT_EQ(Find().first.kind, Kind::kArgument);
}

TEST_F(FirstDifferenceTest, AMissingOpIsNamedThoughCallNumbersShift) {
  // Without mul.0 the later call takes its number.
  Write("t",
        {OpOfValues("F.a.0.forward", 1, 2), OpOfValues("F.c.0.forward", 2, 5), OpOfValues("T.mul.0.forward", 5, 6)});
  Write("g", {OpOfValues("F.a.0.forward", 1, 2), OpOfValues("T.mul.0.forward", 2, 3), OpOfValues("F.c.0.forward", 3, 7),
              OpOfValues("T.mul.1.forward", 7, 8)});
  const Differences d = Find();
  EXPECT_EQ(d.first.kind, Kind::kMissingOp);
  EXPECT_EQ(d.first.name, "T.mul.0.forward");
}

TEST_F(FirstDifferenceTest, AnExtraOpIsNamed) {
  Write("t",
        {OpOfValues("F.a.0.forward", 1, 2), OpOfValues("F.drop.0.forward", 2, 3), OpOfValues("F.c.0.forward", 3, 5)});
  Write("g", {OpOfValues("F.a.0.forward", 1, 2), OpOfValues("F.c.0.forward", 2, 7)});
  const Differences d = Find();
  EXPECT_EQ(d.first.kind, Kind::kExtraOp);
  EXPECT_EQ(d.first.name, "F.drop.0.forward");
}

TEST_F(FirstDifferenceTest, OtherOpsForTheSameValuesAreNoDifference) {
  Write("t", {OpOfValues("F.a.0.forward", 1, 2), OpOfValues("F.x.0.forward", 2, 3), OpOfValues("F.c.0.forward", 3, 5)});
  Write("g", {OpOfValues("F.a.0.forward", 1, 2), OpOfValues("F.y.0.forward", 2, 3), OpOfValues("F.c.0.forward", 3, 5)});
  EXPECT_EQ(Find().Answer().kind, Kind::kNone);
}

TEST_F(FirstDifferenceTest, DataOfAnotherShapeIsNoBug) {
  const std::string wide = R"({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [4], "Max": 1, "Min": 1,
                              "Mean": 1, "Norm": 1})";
  Write("t", {"\"F.a.0.forward\": {\"input_args\": [" + wide + "], \"output\": [" + wide + "]}"});
  Write("g", {OpOfValues("F.a.0.forward", 1, 1)});
  const Differences d = Find();
  EXPECT_EQ(d.Answer().kind, Kind::kShape);
  EXPECT_EQ(d.Answer().verdict, RulerVerdict::kNone);
  EXPECT_EQ(d.ruler.bug, 0u);
}

TEST_F(FirstDifferenceTest, ACastInOnePlaceIsTheAnswer) {
  std::vector<std::string> target, golden;
  for (int i = 0; i < 12; ++i) {
    const std::string name = "F.a." + std::to_string(i) + ".forward";
    const bool cast = i == 7;
    target.push_back(OpWith(name, 1, "", cast ? 1.0003 : 1, cast ? "torch.float16" : "torch.float32"));
    golden.push_back(OpWith(name, 1, "", 1));
  }
  Write("t", target);
  Write("g", golden);
  const Differences d = Find();
  EXPECT_EQ(d.first.kind, Kind::kDType);
  EXPECT_EQ(d.first.name, "F.a.7.forward");
}

TEST_F(FirstDifferenceTest, CodeBetweenTheOpsOfAModuleIsPlacedInIt) {
  const std::string q = "Module.m.attn.q.Linear.forward.0", o = "Module.m.attn.o.Linear.forward.0";
  const std::string module = "Module.m.attn.Attention.forward.0";
  Write("t", {OpOfValues(q, 1, 2), OpOfValues(o, 3, 4), OpOfValues(module, 1, 4)});
  Write("g", {OpOfValues(q, 1, 2), OpOfValues(o, 3.5, 5), OpOfValues(module, 1, 5)});
  dir_.Write("t/construct.json",
             "{\"" + q + "\": \"" + module + "\", \"" + o + "\": \"" + module + "\", \"" + module + "\": null}");
  const Differences d = Find();
  EXPECT_EQ(d.source.kind, Kind::kInput);
  EXPECT_EQ(d.source.name, o);
  EXPECT_EQ(d.source.inside, module);
  EXPECT_EQ(d.source.after, q);
}

TEST_F(FirstDifferenceTest, ASecondGoldenRunExplainsWhatItDiffersBy) {
  Write("t", {OpOfValues("Torch.mul.0.forward", 2, 3.0003)});
  Write("g", {OpOfValues("Torch.mul.0.forward", 2, 3)});
  EXPECT_EQ(Find().first.kind, Kind::kOp);
  const BigArray<float> second_run = {1e-3f};
  EXPECT_EQ(Find(&second_run).Answer().kind, Kind::kNone);
}

/// An op whose input and output have checksums beside their statistics.
std::string Summed(const std::string& name, double in, const std::string& in_sum, double out,
                   const std::string& out_sum) {
  const auto with = [](double v, const std::string& sum) {
    std::string tensor = TensorWith(v);
    return tensor.insert(1, R"("md5": ")" + sum + R"(", )");
  };
  return "\"" + name + R"(": {"input_args": [)" + with(in, in_sum) + R"(], "output": [)" + with(out, out_sum) + "]}";
}

TEST_F(FirstDifferenceTest, ChecksumsThatDifferByRoundOffAreNoDifference) {
  Write("t",
        {Summed("F.linear.0.forward", 1, "aa", 2.0000002, "ab"), Summed("F.b.0.forward", 2.0000002, "ab", 3, "ad")});
  Write("g", {Summed("F.linear.0.forward", 1, "aa", 2, "ac"), Summed("F.b.0.forward", 2, "ac", 3, "ae")});
  const Differences d = Find();
  EXPECT_EQ(d.Answer().kind, Kind::kNone);
  EXPECT_EQ(d.ruler.round_off, 2u);
}

TEST_F(FirstDifferenceTest, AChecksumAloneIsAtMostSuspicious) {
  Write("t", {Summed("F.a.0.forward", 1, "aa", 2, "bb"), Summed("T.gather.0.forward", 2, "bb", 3, "cc")});
  Write("g", {Summed("F.a.0.forward", 1, "aa", 2, "bb"), Summed("T.gather.0.forward", 2, "bb", 3, "cd")});
  const Differences d = Find();
  EXPECT_EQ(d.first.name, "T.gather.0.forward") << "it rounds nothing";
  EXPECT_EQ(d.first.verdict, RulerVerdict::kSuspicious);
}

TEST_F(FirstDifferenceTest, AChecksumWhoseStatisticsDifferIsABug) {
  Write("t", {Summed("F.linear.0.forward", 1, "aa", 2.5, "ab")});
  Write("g", {Summed("F.linear.0.forward", 1, "aa", 2, "ac")});
  EXPECT_EQ(Find().first.verdict, RulerVerdict::kBug);
}

/// A module around two ops, and one behind it.
std::vector<std::string> InModule(double first, double second, double result) {
  return {OpOfValues("T.add.0.forward", first, second), OpOfValues("T.mul.0.forward", second, result),
          OpOfValues("Module.m.mlp.MLP.forward.0", 1, result),
          OpOfValues("Module.m.norm.Norm.forward.0", result, 2 * result)};
}
constexpr const char* kTwoModules =
    R"({"T.add.0.forward": "Module.m.mlp.MLP.forward.0", "T.mul.0.forward": "Module.m.mlp.MLP.forward.0",
        "Module.m.mlp.MLP.forward.0": null, "Module.m.norm.Norm.forward.0": null})";

TEST_F(FirstDifferenceTest, WhatAModuleComputesAnotherWayIsNoDifference) {
  Write("t", InModule(1, 2, 3));
  Write("g", InModule(5, 7, 3));
  dir_.Write("t/construct.json", kTwoModules);
  const Differences d = Find();
  EXPECT_EQ(d.Answer().kind, Kind::kNone);
  EXPECT_EQ(d.ruler.rewritten, 2u);
  EXPECT_EQ(d.ruler.bug + d.ruler.suspicious, 0u);
}

TEST_F(FirstDifferenceTest, AFaultBehindARewrittenModuleIsFound) {
  std::vector<std::string> target = InModule(1, 2, 3), golden = InModule(5, 7, 3);
  target.push_back(OpOfValues("T.exp.0.forward", 6, 9));
  golden.push_back(OpOfValues("T.exp.0.forward", 6, 8));
  Write("t", target);
  Write("g", golden);
  dir_.Write("t/construct.json", kTwoModules);
  EXPECT_EQ(Find().first.name, "T.exp.0.forward");
}

TEST_F(FirstDifferenceTest, AnotherArgumentOfTheSameTensorsIsNoRewrite) {
  const std::string op = "F.layer_norm.0.forward", module = "Module.m.mlp.MLP.forward.0";
  Write("t", {OpWith(op, 1, Float(1e-3), 2), OpOfValues(module, 1, 3)});
  Write("g", {OpWith(op, 1, Float(1e-5), 5), OpOfValues(module, 1, 3)});
  dir_.Write("t/construct.json", "{\"" + op + "\": \"" + module + "\", \"" + module + "\": null}");
  EXPECT_EQ(Find().first.kind, Kind::kArgument);
}

TEST_F(FirstDifferenceTest, ACommunicationIsNeverARewrite) {
  const std::string call = "Distributed.all_reduce.0.forward", module = "Module.m.mlp.MLP.forward.0";
  Write("t", {OpOfValues(call, 1, 2), OpOfValues(module, 1, 3)});
  Write("g", {OpOfValues(call, 1, 5), OpOfValues(module, 1, 3)});
  dir_.Write("t/construct.json", "{\"" + call + "\": \"" + module + "\", \"" + module + "\": null}");
  EXPECT_EQ(Find().first.name, call);
}

TEST_F(FirstDifferenceTest, CommunicationsOfAModuleThatExchangesOtherwiseAreARewrite) {
  const std::string module = "Module.m.moe.MoE.forward.0", shared = "Distributed.all_gather.0.forward";
  const std::string second = "Distributed.all_gather.1.forward", other = "Distributed.all_to_all.0.forward";
  Write("t", {OpOfValues(shared, 1, 2), OpOfValues(second, 2, 4), OpOfValues(module, 1, 3)});
  Write("g", {OpOfValues(shared, 5, 7), OpOfValues(other, 7, 8), OpOfValues(module, 1, 3)});
  const auto inside = [&](const std::string& op) { return "\"" + op + "\": \"" + module + "\", "; };
  const std::string own = "\"" + module + "\": null}";
  dir_.Write("t/construct.json", "{" + inside(shared) + inside(second) + own);
  dir_.Write("g/construct.json", "{" + inside(shared) + inside(other) + own);
  const Differences d = Find();
  EXPECT_EQ(d.Answer().kind, Kind::kNone) << d.Answer().name;
  EXPECT_EQ(d.ruler.rewritten, 1u);
}

TEST_F(FirstDifferenceTest, WhatAModuleMakesOfRoundedInputsIsNotHiddenByTheModuleAround) {
  const std::string gelu = "F.gelu.0.forward", inner = "Module.m.mlp.MLP.forward.0", outer = "Module.m.Model.forward.0";
  const double rounded = 1 + 2e-7;
  Write("t", {OpOfValues(gelu, rounded, 2.001), OpOfValues(inner, rounded, 3.001), OpOfValues(outer, 1, 9)});
  Write("g", {OpOfValues(gelu, 1, 2), OpOfValues(inner, 1, 3), OpOfValues(outer, 1, 9)});
  dir_.Write("t/construct.json",
             "{\"" + gelu + "\": \"" + inner + "\", \"" + inner + "\": \"" + outer + "\", \"" + outer + "\": null}");
  EXPECT_EQ(Find().first.name, gelu);
}

TEST_F(FirstDifferenceTest, OtherRandomNumbersAreADifferenceWhereSomeBeforeAgreed) {
  const std::string first = "Functional.dropout.0.forward", second = "Functional.dropout.1.forward";
  Write("t", {OpWith(first, 1, Float(0.5), 1.2), OpWith(second, 2, Float(0.5), 2.4)});
  Write("g", {OpWith(first, 1, Float(0.5), 1.5), OpWith(second, 2, Float(0.5), 3)});
  EXPECT_EQ(Find().Answer().kind, Kind::kDraw);
  Write("t", {OpWith(first, 1, Float(0.5), 1.5), OpWith(second, 2, Float(0.5), 2.4)});
  const Differences d = Find();
  EXPECT_TRUE(d.draws_alike);
  EXPECT_EQ(d.Answer().name, second);
  EXPECT_EQ(d.Answer().kind, Kind::kOp);
}

TEST(UserFrameTest, SkipsTheFrameworkAndBrokenFrames) {
  std::string place, function;
  EXPECT_TRUE(UserFrame({"nonsense", "File /a/torch/x.py, line 1, in y", "File /b/c.py, line 7, in <module>, \n z"},
                        &place, &function));
  EXPECT_EQ(place, "c.py:7");
  EXPECT_EQ(function, "<module>");
  EXPECT_FALSE(UserFrame({"File /a/torch/x.py, line 1, in y, \n z"}, &place, &function));
}

}  // namespace
}  // namespace msprobe
